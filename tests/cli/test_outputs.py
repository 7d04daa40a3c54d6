"""Files that commands are asked to write never take the place of what they read, nor of anything in a dataset."""

import os

import click
import pytest

from merestone.cli.main import root
from merestone.errors import UsageError
from merestone.inspect.output import check_outputs, written_whole

# Each option that names a file to write, in a command that would work: the option's value comes last.
WRITERS = {
    ("check", "--errors"): ["check", "{file}", "--errors"],
    ("check", "--html"): ["check", "{file}", "--html"],
    ("check", "--junit"): ["check", "{file}", "--junit"],
    ("check", "--sarif"): ["check", "{file}", "--sarif"],
    ("diff", "--html"): ["diff", "{file}@1", "{source}", "--html"],
    ("diff", "--out"): ["diff", "{file}@1", "{source}", "--out"],
    ("read", "--out"): ["read", "{file}", "--out"],
    ("changes", "--html"): ["changes", "{file}", "--html"],
    ("changes", "--out"): ["changes", "{file}", "--out"],
    ("contract infer", "--out"): ["contract", "infer", "{source}", "--out"],
    ("lineage history", "--out"): ["lineage", "history", "{file}", "p1", "--out"],
    ("lineage rejects", "--out"): ["lineage", "rejects", "{file}", "--out"],
    ("lineage query", "--out"): ["lineage", "query", "{file}", "--out"],
    ("lineage scorecard", "--html"): ["lineage", "scorecard", "{file}", "--html"],
    ("lineage scorecard", "--junit"): ["lineage", "scorecard", "{file}", "--junit"],
    ("lineage iso19115", "--out"): ["lineage", "iso19115", "{file}", "--out"],
    ("lineage openlineage", "--out"): ["lineage", "openlineage", "{file}", "--out"],
    ("lineage prov", "--out"): ["lineage", "prov", "{file}", "--out"],
    ("lineage head", "--out"): ["lineage", "head", "{file}", "--out"],
    ("lineage prove", "--out"): ["lineage", "prove", "{file}", "p1", "--out"],
    ("lineage evidence", "--out"): ["lineage", "evidence", "{file}", "--out"],
}


def options():
    """Every option of every command that writes a file, by its metavar and words."""

    def walk(group, path):
        context = click.Context(group, info_name="merestone")
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from walk(command, [*path, name])
            else:
                for each in command.params:
                    words = (getattr(each, "help", "") or "").lower()
                    if isinstance(each, click.Option) and each.metavar == "FILE" and "write" in words:
                        yield " ".join([*path, name]), each.opts[0]

    return set(walk(root, []))


def test_every_option_that_writes_a_file_is_tried():
    assert options() == set(WRITERS)


def everything(folder):
    return {str(each): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def targets(product, tmp_path):
    """Names under which what must stay could be reached."""
    near = tmp_path / "near"
    near.mkdir()
    (near / "link.parquet").symlink_to(product.file)
    (near / "folder").symlink_to(product.url)
    os.link(product.contract, near / "hard.parquet")
    return [
        product.url / "_current.json",
        product.url / "_manifests" / "v000001.json",
        product.url / "data" / "new.parquet",
        near / "folder" / "new.gpkg",
        near / ".." / "near" / "folder" / "deep" / "new.ndjson",
        product.file,
        product.contract,
        near / "link.parquet",
        near / "hard.parquet",
        (product.url / "x y.parquet").as_uri(),
    ]


@pytest.mark.parametrize(("command", "option"), WRITERS)
def test_no_command_writes_over_what_it_reads(command, option, published, merestone, tmp_path):
    published.write(published.first)
    reads = [published.first] if command in ("check", "diff", "contract infer") else []
    before = everything(tmp_path)
    named = {"file": published.file, "source": published.first}
    for target in [*targets(published, tmp_path), *reads]:
        mine = command == "contract infer" and str(target).endswith(("product.yaml", "contract.yaml", "link.parquet", "hard.parquet"))
        words = [each.format(**named) for each in WRITERS[command, option]]
        ended = merestone(*words, target)
        assert ended.code == 2, (target, ended.said)
        assert "nothing was written" in ended.said or mine, ended.said
        assert {name: data for name, data in everything(tmp_path).items() if "/near/" not in name} == before


def test_an_output_beside_what_is_read_is_written(published, merestone, tmp_path):
    for n, words in enumerate(WRITERS.values()):
        ending = {"--errors": "gpkg", "--html": "html"}.get(
            words[-1], "ndjson" if {"query", "history", "rejects"} & {*words} else "parquet"
        )
        target = tmp_path / f"out{n}.{ending}"
        named = {"file": published.file, "source": published.first}
        assert merestone(*[each.format(**named) for each in words], target).code in (0, 1)
        assert target.exists(), words


def test_parts_of_a_shapefile_and_logs_of_a_database_are_read_too(tmp_path):
    for name in ("a.shp", "a.dbf", "a.prj", "b.gpkg", "b.gpkg-wal", "c.gml", "c.xsd"):
        (tmp_path / name).touch()
    for read, target in (("a.shp", "a.dbf"), ("a.shp", "a.prj"), ("b.gpkg", "b.gpkg-wal"), ("c.gml", "c.xsd")):
        with pytest.raises(UsageError, match="is what this command reads"):
            check_outputs({"--out": str(tmp_path / target)}, [str(tmp_path / read)])
    check_outputs({"--out": str(tmp_path / "a.html")}, [str(tmp_path / "a.shp")])


def test_a_destination_that_does_not_exist_yet_is_a_dataset(product, merestone):
    ended = merestone("check", product.file, "--html", product.url / "findings.html")
    assert ended.code == 2
    assert "nothing was written" in ended.err
    assert not product.url.exists()


def test_two_outputs_are_two_files(product, merestone, tmp_path):
    ended = merestone("check", product.file, "--junit", tmp_path / "r.xml", "--sarif", tmp_path / "x" / ".." / "r.xml")
    assert ended.code == 2
    assert "is also the file of junit" in ended.err


def test_a_folder_of_geodatabases_is_not_written_into(tmp_path):
    (tmp_path / "a.gdb").mkdir()
    with pytest.raises(UsageError, match="lies in"):
        check_outputs({"--out": str(tmp_path / "a.gdb" / "x.parquet")}, [str(tmp_path / "a.gdb")])


def test_drafts_are_not_written_into_a_dataset(published, merestone):
    before = everything(published.url)
    ended = merestone("init", published.first, "--out", published.url / "drafts")
    assert ended.code == 2
    assert everything(published.url) == before


def test_a_copy_is_not_written_into_a_dataset(published, merestone):
    before = everything(published.folder)
    for target in (published.url / "copy.parquet", published.url / "copy", published.file):
        ended = merestone("apply", published.file, "--from", "0", "--onto", target)
        assert ended.code == 2, (target, ended.said)
    assert everything(published.folder) == before


def test_a_library_call_does_not_write_into_a_dataset_either(published):
    with pytest.raises(UsageError, match="lies in the dataset"), written_whole(str(published.url / "x.txt")):
        pytest.fail("nothing may be written")
