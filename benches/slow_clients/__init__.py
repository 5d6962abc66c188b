"""What does a healthy client notice of a thousand slow ones?"""
