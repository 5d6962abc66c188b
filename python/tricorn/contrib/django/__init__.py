"""Django: in INSTALLED_APPS, before django.contrib.staticfiles, `manage.py runserver` runs tricorn."""
