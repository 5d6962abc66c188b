"""What an application on greenlets needs of the process it is in: modules that wait cooperatively."""
