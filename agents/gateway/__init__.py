"""The gateway: any agent's own program talks to the policy through the APIs that it knows, token for token."""
