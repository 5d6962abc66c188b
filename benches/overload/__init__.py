"""What is served at three times the capacity, and how soon is the rest refused?"""
