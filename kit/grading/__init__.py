"""Grading of answers that nobody trusts: who runs them, who judges, and how the two speak.

    nbgrader        reads and writes the course, and runs no answer   preprocess.py
      judge         holds the check, and runs no answer either        judge.py
        sandbox     a process without course and network              sandbox.py
          worker    runs the student's cells, and calls the answers   peer.py

A check calls an answer as it always does. Here that call is a message to the worker, and what
comes back is data: numbers, arrays, texts. So the verdict is made of values that are compared
where no line of the student's ever ran.
"""
