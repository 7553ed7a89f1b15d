"""What needs heavy tools: a browser, npm, and the groups of the kit. Run by `make test-kit`."""
