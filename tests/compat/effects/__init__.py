"""What each setting does, as an operator can see it: one function per setting, `sees_<name>`, in these modules."""
