"""Commands for the policy, approvals and the audit log."""
