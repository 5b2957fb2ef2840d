"""Shell commands under the policy's rules."""
