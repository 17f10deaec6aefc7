"""Codes of refusals and notes of changes of brokers, and of their checks."""

from __future__ import annotations

from enum import StrEnum


class BrokerLifeErrorCode(StrEnum):
    """Codes; people search for the values."""

    DOES_NOT_FIT = "broker-change-does-not-fit"
    DIRECTORY_UNKNOWN = "broker-change-directory-unknown"
    FEW_LEFT = "broker-change-few-uncordoned"


class BrokerLifeCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    CORDON_FITS = "broker-change-cordon-fits"
    UNREGISTER_FITS = "broker-change-unregister-fits"
