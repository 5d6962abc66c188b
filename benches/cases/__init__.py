"""How fast is a request, and what does it cost? One worker of tricorn beside its peers."""
