"""Key material: issue certificates and judge them. Imports nothing of ours."""
