from django.urls import path

from kafkadash.throttle_removal import pages

app_name = "throttle_removal"

urlpatterns = [path("clusters/<slug:slug>/throttles/remove/", pages.propose, name="propose")]
