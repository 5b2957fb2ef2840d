"""The policy: decides which calls are allowed, need approval, or are denied."""
