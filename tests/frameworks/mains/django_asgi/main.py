from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="only for tests")


async def hello(request):
    return HttpResponse("Hello, django_asgi!")


async def lines():
    for number in range(3):
        yield f"line {number}\n"


async def stream(request):
    return StreamingHttpResponse(lines())


urlpatterns = [path("", hello), path("stream", stream)]
app = get_asgi_application()
