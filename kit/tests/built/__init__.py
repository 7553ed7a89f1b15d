"""What needs heavy tools: a browser, npm, and the extras of the kit. Run by `make test-kit`."""
