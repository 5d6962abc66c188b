"""What does a healthy client notice of uploads that come as fast as they can?"""
