"""What does a worker weigh, and what does an idle connection?"""
