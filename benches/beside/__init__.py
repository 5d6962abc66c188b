"""What does a healthy client notice of others: a thousand slow ones, four uploads at full speed?"""
