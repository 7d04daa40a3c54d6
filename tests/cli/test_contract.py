"""`contract lint`, `schema` and `show`."""

import json

import pytest


def test_lint_counts_errors_warnings_and_marks(product, merestone):
    good = merestone("contract", "lint", product.contract, "--json")
    assert (good.code, good.doc["status"], good.doc["errors"]) == (0, "pass", 0)
    assert good.doc["warnings"] == len([each for each in good.doc["messages"] if each["level"] == "warning"])
    product.terms["coordinate_precision"] = 14
    product.write(product.first)
    bad = merestone("contract", "lint", product.contract, "--json")
    assert (bad.code, bad.doc["status"], bad.doc["messages"][0]["path"]) == (1, "fail", "coordinate_precision")
    said = merestone("contract", "lint", product.contract)
    assert said.code == 1
    assert said.out.startswith(f"{product.contract}: 1 error, ")


def test_marks_to_confirm_are_counted_and_do_not_fail(product, merestone):
    lines = [f"{name}: {json.dumps(value)}" + ("  # confirm" if name == "crs_epsg" else "") for name, value in product.terms.items()]
    product.contract.write_text("\n".join(lines))
    ended = merestone("contract", "lint", product.contract, "--json")
    assert (ended.code, ended.doc["confirm"]) == (0, 1)
    said = merestone("contract", "lint", product.contract).out
    assert "1 guess to confirm" in said
    assert said.splitlines()[-1] == "  next: check each guess, then remove its `# confirm` mark"


def test_a_contract_with_an_unknown_clause_fails_lint(product, merestone):
    product.terms["axis_ordre"] = "lon_lat"
    product.write(product.first)
    ended = merestone("contract", "lint", product.contract, "--json")
    assert (ended.code, ended.doc["contract_version"]) == (1, None)
    assert "axis_ordre" in ended.doc["messages"][0]["path"]


@pytest.mark.parametrize("content", [None, "a: [", "\xff\xfe\xfd"])
def test_what_is_no_document_is_wrong_usage(content, tmp_path, merestone):
    path = tmp_path / "x.contract.yaml"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    ended = merestone("contract", "lint", path, "--json")
    assert (ended.code, ended.doc["error"]["kind"]) == (2, "usage")


def test_schema_is_one_json_document_either_way(merestone):
    plain, heard = merestone("contract", "schema"), merestone("contract", "schema", "--json")
    assert json.loads(plain.out) == heard.doc
    assert heard.doc["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_show_says_the_same_of_a_file_and_of_what_was_published_under_it(published, merestone):
    file = merestone("contract", "show", published.contract, "--json").doc
    assert file["contract"]["topology_rule_set"] == "none"
    for name in (published.file, published.url, f"{published.url}@1"):
        assert merestone("contract", "show", name, "--json").doc == file
    said = merestone("contract", "show", published.url).out
    assert "crs_epsg               4326" in said
    assert "area   decimal(8,2)" in said


def test_files_that_are_taken_for_each_other_are_told_for_what_they_are(product, merestone):
    contract = product.file.parent / product.settings["contract"]
    for arguments, said, step in (
        (["contract", "lint", product.file], "is a publication file, not a contract", f"its contract is {product.settings['contract']}"),
        (["check", product.first, "--contract", product.file], "is a publication file, not a contract", "its contract is"),
        (["publish", contract], "is a contract, not a publication file", "name the publication file"),
        (["publish", product.first], "is a delivery, not a publication file", f"merestone init {product.first}"),
        (["log", product.first], "is a delivery, not a publication file", f"merestone init {product.first}"),
    ):
        ended = merestone(*arguments)
        assert ended.code == 2
        assert said in ended.err
        assert step in ended.err
