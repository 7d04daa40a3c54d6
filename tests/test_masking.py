"""Secrets are masked in whatever text they come, and other text stays as it is."""

import pickle

import pytest

from merestone.errors import MerestoneError, StoreError
from merestone.masking import masked, masked_within

SECRET = "hunter2"  # noqa: S105 - the word that must not be seen

HIDDEN = [
    "postgresql://u:hunter2@h:5432/db",
    "postgresql://u:p/hunter2@h/db?sslmode=require",
    "postgresql://u:12#hunter2@h/db",
    "postgresql://u:12?hunter2@h/db",
    "postgresql://u:p%40hunter2@h/db",
    "https://hunter2@example.org/x",
    "https://hunter2:x-oauth-basic@example.org/x",
    "s3://AKIA:hunter2@bucket/x",
    "file://u:hunter2@host/x",
    "https:/u:hunter2@h/x",
    "/vsicurl/https://u:hunter2@h/x",
    "/vsicurl?url=https%3A%2F%2Fh&userpwd=u:hunter2",
    "https://h/x?sig=hunter2&se=2026",
    "https://h/x?se=2026&sig=hunter2%3D",
    "https://h/x?%73ig=hunter2",
    "https://h/x?SIG=hunter2",
    "https://h/x?token=hunter2#part",
    "https://h/x?access_token=hunter2",
    "https://h/x?api_key=hunter2",
    "https://h/x?key=hunter2",
    "https://h/x?a=1&code=hunter2",
    "https://h/x?X-Amz-Algorithm=A&X-Amz-Credential=hunter2&X-Amz-Date=1",
    "https://h/x?X-Amz-Signature=hunter2",
    "https://h/x?X-Amz-Security-Token=hunter2",
    "https://h/x?X-Goog-Signature=hunter2",
    "https://h/x?AWSAccessKeyId=hunter2&Expires=1",
    "PG:host=h password=hunter2 dbname=d",
    "PG:host=h password = hunter2 dbname=d",
    "host=h password='hunter2' dbname=d",
    r"host=h password='a \' hunter2' dbname=d",
    "MYSQL:db,user=u,password=hunter2,host=h",
    "Server=h;Uid=u;Pwd=hunter2;Database=d",
    "Server=h;Pwd={a;hunter2};Database=d",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2==;EndpointSuffix=e",
    "BlobEndpoint=https://a/;SharedAccessSignature=sv=1&sig=hunter2",
    "OCI:u/hunter2@h",
    "aws_secret_access_key=hunter2",
    "Authorization: Bearer hunter2hunter2",
    "cannot read 'https://u:hunter2@h/x': no answer",
    "read https://h/x?token=hunter2, then s3://A:hunter2@b/c; then stop",
]

PLAIN = [
    "merestone publish parcels.yaml --confirm 7c1e-a90b",
    "https://example.org:8443/a/b@2",
    "http://localhost:8080/ds@3",
    "file:///a@b/c",
    "file:/a@b/c",
    "ann@example.org",
    "data/district=D0001/r1-ab12-0.parquet",
    "add `key: [COLUMN]`, or --key=parcel_id",
    "+proj=utm +zone=32 +ellps=GRS80",
    "https://example.org/x?bbox=1,2,3,4&limit=10",
    "author=Ann, assigned=7, design=x",
    "the density is 3 = 3",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_a_secret_is_masked(text):
    assert SECRET in text
    assert SECRET not in masked(text)
    assert "***" in masked(text)
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_stays(text):
    assert masked(text) == text


@pytest.mark.parametrize("text", HIDDEN)
def test_no_error_holds_a_secret(text):
    fault = StoreError(f"cannot reach {text}", field=text, hint=f"look at {text}")
    for each in (fault, pickle.loads(pickle.dumps(fault))):  # noqa: S301 - our own
        assert SECRET not in f"{each} {each!r} {each.args} {each.to_json()}"


def test_every_error_masks():
    def kinds(cls):
        return [cls, *(each for sub in cls.__subclasses__() for each in kinds(sub))]

    for each in kinds(MerestoneError):
        if each.__init__ is MerestoneError.__init__:
            assert SECRET not in str(each("x://u:hunter2@h/"))


@pytest.mark.parametrize(
    "text", ["WFS:https:/u:hunter2@h/x", "Server=h;Pwd=hunter2;", "https://h/x?bearer=hunter2", "https://h/x;jsessionid=hunter2"]
)
def test_every_text_within_a_value_is_masked(text):
    value = {"path": f"/data/{text}", "many": [text, {"deep": (text, 3, None, True)}]}
    assert SECRET not in str(masked_within(value))
    assert masked_within(value)["many"][1]["deep"][1:] == [3, None, True]
