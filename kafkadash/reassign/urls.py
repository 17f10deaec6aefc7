from django.urls import URLPattern

app_name = "reassign"

urlpatterns: list[URLPattern] = []
