"""The lineage of a dataset version, or of one run, as an ISO 19115 record: ISO 19139 (gmd) and ISO 19115-3 (mdb).

Not here: where the facts come from (`audit.iso`), checks beyond the schemas (`iso19115_lint`). Nothing is read from a clock: the same facts
give the same bytes.

The statement carries the counts and the run's root, because it is the only lineage text that many catalogues keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from merestone.render.run_facts import StepFacts
from merestone.render.xml_text import Element, document

GMD, MDB = "gmd", "mdb"
ENCODINGS = (GMD, MDB)
ID = "merestone-"
"""How the ids of our elements begin: so they are found again in a record that they were put into."""
REASONS = 5
"""How many reasons a step names, the most frequent first."""

_GMD_LISTS = "http://standards.iso.org/iso/19139/resources/gmxCodelists.xml"
_MDB_LISTS = "https://schemas.isotc211.org/19115/resources/Codelists/cat/codelists.xml"
_LANGUAGES = "http://www.loc.gov/standards/iso639-2/"
_XSI = {"xmlns:xlink": "http://www.w3.org/1999/xlink", "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance"}
NAMESPACES = {
    GMD: {
        "xmlns:gmd": "http://www.isotc211.org/2005/gmd",
        "xmlns:gco": "http://www.isotc211.org/2005/gco",
        "xmlns:gmx": "http://www.isotc211.org/2005/gmx",
        "xmlns:gml": "http://www.opengis.net/gml/3.2",
        **_XSI,
        "xsi:schemaLocation": "http://www.isotc211.org/2005/gmd http://schemas.opengis.net/iso/19139/20070417/gmd/gmd.xsd",
    },
    MDB: {
        "xmlns:mdb": "http://standards.iso.org/iso/19115/-3/mdb/2.0",
        "xmlns:cit": "http://standards.iso.org/iso/19115/-3/cit/2.0",
        "xmlns:mcc": "http://standards.iso.org/iso/19115/-3/mcc/1.0",
        "xmlns:gco": "http://standards.iso.org/iso/19115/-3/gco/1.0",
        "xmlns:gcx": "http://standards.iso.org/iso/19115/-3/gcx/1.0",
        "xmlns:gex": "http://standards.iso.org/iso/19115/-3/gex/1.0",
        "xmlns:lan": "http://standards.iso.org/iso/19115/-3/lan/1.0",
        "xmlns:mri": "http://standards.iso.org/iso/19115/-3/mri/1.0",
        "xmlns:mrl": "http://standards.iso.org/iso/19115/-3/mrl/2.0",
        "xmlns:mrs": "http://standards.iso.org/iso/19115/-3/mrs/1.0",
        "xmlns:gml": "http://www.opengis.net/gml/3.2",
        **_XSI,
        "xsi:schemaLocation": "http://standards.iso.org/iso/19115/-3/mds/2.0 https://schemas.isotc211.org/19115/-3/mds/2.0/mds.xsd",
    },
}


@dataclass(frozen=True, slots=True)
class ProcessStep(StepFacts):
    """A step with what ISO records tell beyond its counts.

    `reasons` are (outcome, text, events), most frequent first; `procedure` says how it was done, `parameters` with what settings, both ""
    where there is nothing to say.
    """

    reasons: tuple[tuple[str, str, int], ...] = ()
    procedure: str = ""
    parameters: str = ""


@dataclass(frozen=True, slots=True)
class RecordSource:
    """What went in: the delivery, or the version before. `crs` is its EPSG:<code>, None where it has none."""

    title: str
    description: str
    crs: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """All that a record says.

    Args:
        identifier: of this record, a UUID: the record of each version has its own.
        resource: of the dataset, a UUID: the same for all its versions.
        predecessor: the identifier of the record of the version before, None where there is none.
        title: of the dataset.
        abstract: what it is.
        contact: mail address of the owner, None where it is not known.
        time: of the metadata: when the run was sealed, aware.
        version: the dataset's version, None for a run that published none: the record then claims no finished dataset.
        epsg: reference system of the dataset, None where it is not known.
        extent: west, south, east, north in degrees, None where there is none.
        statement: one text (INSPIRE: exactly one a record).
        rationale: why the steps were done (the contract).
        steps: none where nothing was recorded.
        sources: what went in; the first is the delivery, from which the steps start.
    """

    identifier: str
    resource: str
    predecessor: str | None
    title: str
    abstract: str
    contact: str | None
    time: datetime
    version: int | None
    epsg: int | None
    extent: tuple[float, float, float, float] | None
    statement: str
    rationale: str
    steps: tuple[ProcessStep, ...]
    sources: tuple[RecordSource, ...]


def render(record: Record, encoding: str) -> str:
    """The record as XML text.

    Args:
        record: the facts.
        encoding: gmd (ISO 19139) or mdb (ISO 19115-3).

    Raises:
        ValueError: another encoding.
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"{encoding!r} is none of {', '.join(ENCODINGS)}")
    return document(_gmd(record) if encoding == GMD else _mdb(record))


def lineage(record: Record, encoding: str) -> Element:
    """The LI_Lineage alone, for a record that exists already."""
    return _gmd_lineage(record) if encoding == GMD else _mdb_lineage(record)


def counts(step: ProcessStep) -> str:
    """The counts of a step, as they stand in the record."""
    return f"{step.passed} PASS, {step.warned} WARN, {step.rejected} REJECT"


def stamp(time: datetime) -> str:
    """A time in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _description(step: ProcessStep, *, whole: bool) -> str:
    """What a step did; `whole` where the encoding has no place of its own for procedure and parameters."""
    crs = f" {step.source_crs} to {step.target_crs};" if step.source_crs != step.target_crs else f" {step.target_crs};"
    parts = [f"{step.stage}/{step.event_type}:{crs} {counts(step)}."]
    if stamp(step.first) != stamp(step.last):
        parts.append(f"From {stamp(step.first)} to {stamp(step.last)}.")
    if whole:
        parts += [f"{each}." for each in (step.procedure, step.parameters) if each]
    if step.reasons:
        given = "; ".join(f"{count} {outcome}: {text}" for outcome, text, count in step.reasons[:REASONS])
        more = len(step.reasons) - REASONS
        parts.append(f"Reasons: {given}{f'; and {more} more reasons' if more > 0 else ''}.")
    return " ".join(parts)


# --- ISO 19139 -------------------------------------------------------------------------------------------------------------------------


def _gmd(record: Record) -> Element:
    identification = [
        _in(
            "gmd:citation",
            Element(
                "gmd:CI_Citation",
                (
                    _string("gmd:title", record.title),
                    _gmd_date(record.time, "revision"),
                    *([_string("gmd:edition", str(record.version))] if record.version is not None else []),
                    _in("gmd:identifier", Element("gmd:MD_Identifier", (_string("gmd:code", f"urn:uuid:{record.resource}"),))),
                ),
            ),
        ),
        _string("gmd:abstract", record.abstract),
        _in("gmd:status", _code("gmd:MD_ProgressCode", _progress(record), _GMD_LISTS)),
        _gmd_contact("gmd:pointOfContact", record.contact, "owner"),
        *_gmd_predecessor(record),
        _in("gmd:spatialRepresentationType", _code("gmd:MD_SpatialRepresentationTypeCode", "vector", _GMD_LISTS)),
        _in("gmd:language", _language("gmd:LanguageCode")),
        _in("gmd:topicCategory", Element("gmd:MD_TopicCategoryCode", "location")),
    ]
    if record.extent is not None:
        identification.append(
            _in(
                "gmd:extent",
                _in("gmd:EX_Extent", _in("gmd:geographicElement", Element("gmd:EX_GeographicBoundingBox", _box("gmd", record.extent)))),
            )
        )
    reference = [] if record.epsg is None else [_in("gmd:referenceSystemInfo", _gmd_crs(f"EPSG:{record.epsg}"))]
    return Element(
        "gmd:MD_Metadata",
        (
            _string("gmd:fileIdentifier", f"urn:uuid:{record.identifier}"),
            _in("gmd:language", _language("gmd:LanguageCode")),
            _in("gmd:characterSet", _code("gmd:MD_CharacterSetCode", "utf8", _GMD_LISTS)),
            _in("gmd:hierarchyLevel", _code("gmd:MD_ScopeCode", "dataset", _GMD_LISTS)),
            _gmd_contact("gmd:contact", record.contact, "pointOfContact"),
            _in("gmd:dateStamp", Element("gco:Date", stamp(record.time)[:10])),
            _string("gmd:metadataStandardName", "ISO 19115:2003/19139"),
            _string("gmd:metadataStandardVersion", "1.0"),
            *reference,
            _in("gmd:identificationInfo", Element("gmd:MD_DataIdentification", tuple(identification))),
            _in(
                "gmd:dataQualityInfo",
                Element(
                    "gmd:DQ_DataQuality",
                    (
                        _in("gmd:scope", Element("gmd:DQ_Scope", (_in("gmd:level", _code("gmd:MD_ScopeCode", "dataset", _GMD_LISTS)),))),
                        _in("gmd:lineage", _gmd_lineage(record)),
                    ),
                ),
            ),
        ),
        NAMESPACES[GMD],
    )


def _gmd_predecessor(record: Record) -> list[Element]:
    if record.predecessor is None:
        return []
    named = Element("gmd:MD_Identifier", (_string("gmd:code", f"urn:uuid:{record.predecessor}"),))
    kind = _code("gmd:DS_AssociationTypeCode", "crossReference", _GMD_LISTS)  # ISO 19115:2003 has no code for a version before
    inner = (_in("gmd:aggregateDataSetIdentifier", named), _in("gmd:associationType", kind))
    return [_in("gmd:aggregationInfo", Element("gmd:MD_AggregateInformation", inner))]


def _gmd_lineage(record: Record) -> Element:
    steps = [_in("gmd:processStep", _gmd_step(step, number, record)) for number, step in enumerate(record.steps, 1)]
    sources = [_in("gmd:source", _gmd_source(each, number, record)) for number, each in enumerate(record.sources, 1)]
    return Element("gmd:LI_Lineage", (_string("gmd:statement", record.statement), *steps, *sources))


def _gmd_step(step: ProcessStep, number: int, record: Record) -> Element:
    inner = [_string("gmd:description", _description(step, whole=True))]
    if record.rationale:
        inner.append(_string("gmd:rationale", record.rationale))
    inner.append(_in("gmd:dateTime", Element("gco:DateTime", stamp(step.last))))
    inner += [
        _in(
            "gmd:processor",
            Element(
                "gmd:CI_ResponsibleParty",
                (
                    _string("gmd:organisationName", tool),
                    _in("gmd:role", _code("gmd:CI_RoleCode", "processor", _GMD_LISTS)),
                ),
            ),
        )
        for tool in step.tools
    ]
    if record.sources:
        inner.append(Element("gmd:source", (), {"xlink:href": f"#{ID}source-1"}))
    return Element("gmd:LI_ProcessStep", tuple(inner), {"id": f"{ID}step-{number}"})


def _gmd_source(source: RecordSource, number: int, record: Record) -> Element:
    inner = [_string("gmd:description", source.description)]
    if source.crs is not None:
        inner.append(_in("gmd:sourceReferenceSystem", _gmd_crs(source.crs)))
    inner.append(
        _in(
            "gmd:sourceCitation",
            Element("gmd:CI_Citation", (_string("gmd:title", source.title), Element("gmd:date", (), {"gco:nilReason": "unknown"}))),
        )
    )
    if number == 1 and record.steps:
        inner.append(Element("gmd:sourceStep", (), {"xlink:href": f"#{ID}step-1"}))
    return Element("gmd:LI_Source", tuple(inner), {"id": f"{ID}source-{number}"})


def _gmd_contact(name: str, contact: str | None, role: str) -> Element:
    if contact is None:
        return Element(name, (), {"gco:nilReason": "unknown"})
    address = _in(
        "gmd:contactInfo",
        _in("gmd:CI_Contact", _in("gmd:address", Element("gmd:CI_Address", (_string("gmd:electronicMailAddress", contact),)))),
    )
    return _in(
        name,
        Element(
            "gmd:CI_ResponsibleParty",
            (_string("gmd:organisationName", contact), address, _in("gmd:role", _code("gmd:CI_RoleCode", role, _GMD_LISTS))),
        ),
    )


def _gmd_date(time: datetime, kind: str) -> Element:
    return _in(
        "gmd:date",
        Element(
            "gmd:CI_Date",
            (_in("gmd:date", Element("gco:Date", stamp(time)[:10])), _in("gmd:dateType", _code("gmd:CI_DateTypeCode", kind, _GMD_LISTS))),
        ),
    )


def _gmd_crs(crs: str) -> Element:
    code = _in("gmd:code", _anchor("gmx:Anchor", crs))
    return _in("gmd:MD_ReferenceSystem", _in("gmd:referenceSystemIdentifier", Element("gmd:RS_Identifier", (code,))))


# --- ISO 19115-3 -----------------------------------------------------------------------------------------------------------------------


def _mdb(record: Record) -> Element:
    identification = [
        _in(
            "mri:citation",
            Element(
                "cit:CI_Citation",
                (
                    _string("cit:title", record.title),
                    _in("cit:date", _mdb_date(record.time, "revision", whole=False)),
                    *([_string("cit:edition", str(record.version))] if record.version is not None else []),
                    _in("cit:identifier", _mdb_uuid(record.resource)),
                ),
            ),
        ),
        _string("mri:abstract", record.abstract),
        _in("mri:status", _code("mcc:MD_ProgressCode", _progress(record), _MDB_LISTS)),
        _mdb_contact("mri:pointOfContact", record.contact, "owner"),
        _in("mri:spatialRepresentationType", _code("mcc:MD_SpatialRepresentationTypeCode", "vector", _MDB_LISTS)),
        _in("mri:topicCategory", Element("mri:MD_TopicCategoryCode", "location")),
    ]
    if record.extent is not None:
        identification.append(
            _in(
                "mri:extent",
                _in("gex:EX_Extent", _in("gex:geographicElement", Element("gex:EX_GeographicBoundingBox", _box("gex", record.extent)))),
            )
        )
    if record.predecessor is not None:
        before = (_string("cit:title", "the record of the version before"), _in("cit:identifier", _mdb_uuid(record.predecessor)))
        inner = (
            _in("mri:associationType", _code("mri:DS_AssociationTypeCode", "revisionOf", _MDB_LISTS)),
            _in("mri:metadataReference", Element("cit:CI_Citation", before)),
        )
        identification.append(_in("mri:associatedResource", Element("mri:MD_AssociatedResource", inner)))
    identification.append(_in("mri:defaultLocale", _locale()))
    reference = [] if record.epsg is None else [_in("mdb:referenceSystemInfo", _mdb_crs(f"EPSG:{record.epsg}"))]
    return Element(
        "mdb:MD_Metadata",
        (
            _in(
                "mdb:metadataIdentifier",
                _mdb_uuid(record.identifier),
            ),
            _in("mdb:defaultLocale", _locale()),
            _in(
                "mdb:metadataScope", _in("mdb:MD_MetadataScope", _in("mdb:resourceScope", _code("mcc:MD_ScopeCode", "dataset", _MDB_LISTS)))
            ),
            _mdb_contact("mdb:contact", record.contact, "pointOfContact"),
            *(_in("mdb:dateInfo", _mdb_date(record.time, kind, whole=True)) for kind in ("creation", "revision")),
            _in("mdb:metadataStandard", Element("cit:CI_Citation", (_string("cit:title", "ISO 19115-3:2018"),))),
            *reference,
            _in("mdb:identificationInfo", Element("mri:MD_DataIdentification", tuple(identification))),
            _in("mdb:resourceLineage", _mdb_lineage(record)),
        ),
        NAMESPACES[MDB],
    )


def _mdb_uuid(identifier: str) -> Element:
    return Element("mcc:MD_Identifier", (_string("mcc:code", identifier), _string("mcc:codeSpace", "urn:uuid")))


def _mdb_lineage(record: Record) -> Element:
    scope = _in("mrl:scope", _in("mcc:MD_Scope", _in("mcc:level", _code("mcc:MD_ScopeCode", "dataset", _MDB_LISTS))))
    sources = [_in("mrl:source", _mdb_source(each, number)) for number, each in enumerate(record.sources, 1)]
    steps = [_in("mrl:processStep", _mdb_step(step, number, record)) for number, step in enumerate(record.steps, 1)]
    return Element("mrl:LI_Lineage", (_string("mrl:statement", record.statement), scope, *sources, *steps))


def _mdb_step(step: ProcessStep, number: int, record: Record) -> Element:
    inner = [_string("mrl:description", _description(step, whole=False))]
    if record.rationale:
        inner.append(_string("mrl:rationale", record.rationale))
    instant = Element("gml:TimeInstant", (Element("gml:timePosition", stamp(step.last)),), {"gml:id": f"{ID}time-{number}"})
    inner.append(_in("mrl:stepDateTime", instant))
    if record.sources:
        inner.append(Element("mrl:source", (), {"xlink:href": f"#{ID}source-1", "xlink:title": record.sources[0].title}))
    processing = [_in("mrl:identifier", Element("mcc:MD_Identifier", (_string("mcc:code", step.stage),)))]
    processing += [_in("mrl:softwareReference", Element("cit:CI_Citation", (_string("cit:title", tool),))) for tool in step.tools]
    if step.procedure:
        processing.append(_string("mrl:procedureDescription", step.procedure))
    if step.parameters:
        processing.append(_string("mrl:runTimeParameters", step.parameters))
    if len(processing) == 1:
        return Element("mrl:LI_ProcessStep", tuple(inner), {"id": f"{ID}step-{number}"})
    inner.append(_in("mrl:processingInformation", Element("mrl:LE_Processing", tuple(processing))))
    return Element("mrl:LE_ProcessStep", tuple(inner), {"id": f"{ID}step-{number}"})


def _mdb_source(source: RecordSource, number: int) -> Element:
    inner = [_string("mrl:description", source.description)]
    if source.crs is not None:
        inner.append(_in("mrl:sourceReferenceSystem", _mdb_crs(source.crs)))
    inner.append(_in("mrl:sourceCitation", Element("cit:CI_Citation", (_string("cit:title", source.title),))))
    return Element("mrl:LI_Source", tuple(inner), {"id": f"{ID}source-{number}"})


def _mdb_contact(name: str, contact: str | None, role: str) -> Element:
    if contact is None:
        return Element(name, (), {"gco:nilReason": "unknown"})
    address = _in(
        "cit:contactInfo",
        _in("cit:CI_Contact", _in("cit:address", Element("cit:CI_Address", (_string("cit:electronicMailAddress", contact),)))),
    )
    party = _in("cit:party", Element("cit:CI_Organisation", (_string("cit:name", contact), address)))
    return _in(name, Element("cit:CI_Responsibility", (_in("cit:role", _code("cit:CI_RoleCode", role, _MDB_LISTS)), party)))


def _mdb_date(time: datetime, kind: str, *, whole: bool) -> Element:
    date = Element("gco:DateTime", stamp(time)) if whole else Element("gco:Date", stamp(time)[:10])
    return Element("cit:CI_Date", (_in("cit:date", date), _in("cit:dateType", _code("cit:CI_DateTypeCode", kind, _MDB_LISTS))))


def _mdb_crs(crs: str) -> Element:
    code = _in("mcc:code", _anchor("gcx:Anchor", crs))
    return _in("mrs:MD_ReferenceSystem", _in("mrs:referenceSystemIdentifier", Element("mcc:MD_Identifier", (code,))))


def _locale() -> Element:
    return Element(
        "lan:PT_Locale",
        (
            _in("lan:language", _language("lan:LanguageCode")),
            _in("lan:characterEncoding", _code("lan:MD_CharacterSetCode", "utf8", _MDB_LISTS)),
        ),
    )


# --- both ------------------------------------------------------------------------------------------------------------------------------


def _in(name: str, inner: Element) -> Element:
    return Element(name, (inner,))


def _string(name: str, text: str) -> Element:
    return _in(name, Element("gco:CharacterString", text))


def _code(name: str, value: str, lists: str) -> Element:
    return Element(name, value, {"codeList": f"{lists}#{name.partition(':')[2]}", "codeListValue": value})


def _language(name: str) -> Element:
    return Element(name, "eng", {"codeList": _LANGUAGES, "codeListValue": "eng"})


def _anchor(name: str, crs: str) -> Element:
    authority, _, code = crs.partition(":")
    return Element(name, crs, {"xlink:href": f"http://www.opengis.net/def/crs/{authority}/0/{code}"})


def _box(prefix: str, extent: tuple[float, float, float, float]) -> tuple[Element, ...]:
    west, south, east, north = extent
    sides = (("westBoundLongitude", west), ("eastBoundLongitude", east), ("southBoundLatitude", south), ("northBoundLatitude", north))
    return tuple(_in(f"{prefix}:{name}", Element("gco:Decimal", f"{value:.7f}")) for name, value in sides)


def _progress(record: Record) -> str:
    return "completed" if record.version is not None else "underDevelopment"
