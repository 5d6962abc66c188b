"""What does a request cost under greenlets, and what does one that waits?"""
