"""The policy: which calls are allowed, which a person is asked about, which are denied."""
