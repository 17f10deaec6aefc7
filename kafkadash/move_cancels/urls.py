from django.urls import path

from kafkadash.move_cancels import pages

app_name = "move_cancels"

urlpatterns = [path("clusters/<slug:slug>/cancels/new/", pages.propose, name="propose")]
