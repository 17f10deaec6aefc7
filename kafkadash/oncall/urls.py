from django.urls import path

from kafkadash.oncall.views.board import board
from kafkadash.oncall.views.overview import overview
from kafkadash.oncall.views.switcher import switcher

app_name = "oncall"

urlpatterns = [
    path("", board, name="board"),
    path("clusters/", switcher, name="switcher"),
    path("clusters/<slug:slug>/", overview, name="overview"),
]
