from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="only for tests")


def hello(request):
    return HttpResponse("Hello, django_wsgi!")


def stream(request):
    return StreamingHttpResponse(f"line {number}\n" for number in range(3))


urlpatterns = [path("", hello), path("stream", stream)]
app = get_wsgi_application()
