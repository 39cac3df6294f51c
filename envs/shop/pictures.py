"""Pictures of products, drawn from what they are: a shape for each kind, in the colour or material of the product."""

from __future__ import annotations

from collections.abc import Mapping

from turnwise.envs.shop.catalogue import Product

_COLOURS: Mapping[str, str] = {
    "black": "#27272a", "white": "#f4f4f5", "red": "#dc2626", "blue": "#2563eb", "green": "#16a34a",
    "grey": "#71717a", "orange": "#ea580c", "purple": "#9333ea", "teal": "#0d9488", "beige": "#d6c7a1",
    "pink": "#ec4899", "brown": "#78350f", "yellow": "#eab308", "navy": "#1e3a8a", "silver": "#a8a29e",
    "ivory": "#f5f0dc", "olive": "#65722a",
    # materials
    "leather": "#7c4a21", "wood": "#a16207", "bamboo": "#ca9a3b", "cork": "#b98a54", "glass": "#a5d8e6",
    "stainless steel": "#9ca3af", "steel": "#6b7280", "cast iron": "#3f3f46", "carbon steel": "#52525b",
    "aluminium": "#b0b7bf", "titanium": "#858b91", "terracotta": "#c2623f", "rubber": "#374151", "down": "#e2e8f0",
    "wool": "#cbb89d", "cotton": "#e7e2d3", "silk": "#dcb7c8", "latex": "#e8dfb8", "ceramic": "#dbe3e8",
}  # fmt: skip
_PLAIN = "#8b9dc3"

_SHAPES: Mapping[str, str] = {
    "backpack": "M30 34q0-18 20-18t20 18v46q0 6-6 6H36q-6 0-6-6zM38 52h24v18H38zM42 16v-6h16v6",
    "tent": "M8 82 50 18l42 64zM50 18 38 82h24z",
    "headlamp": "M12 46h76v10H12zM36 34h28v34H36zM50 44a7 7 0 1 0 .1 0z",
    "hammock": "M6 28Q50 96 94 28 50 76 6 28zM6 28V12M94 28V12",
    "cooler": "M16 40h68v42H16zM12 28h76v12H12zM34 28V16h32v12",
    "scooter": "M24 78a8 8 0 1 0 .1 0zM80 78a8 8 0 1 0 .1 0zM24 80h52L66 18H52v6h10z",
    "helmet": "M12 62q0-40 40-40t38 40H12zM30 60l6-26M50 60V28M70 60l-6-26",
    "lock": "M26 46h48v38H26zM36 46V32a14 14 0 0 1 28 0v14M50 58v12",
    "kettle": "M30 34h40l8 48H22zM40 34v-8h20v8M78 44q14 0 8 24M24 50 10 40",
    "blender": "M34 14h32l-4 46H38zM32 62h36l6 24H26z",
    "skillet": "M8 52a28 28 0 1 0 56 0 28 28 0 1 0-56 0M62 46h32v10H62z",
    "mug": "M24 28h42v54H24zM66 38q20 0 20 16T66 70",
    "flask": "M36 28h28v58H36zM40 12h20v16H40z",
    "toaster": "M14 40q0-10 10-10h52q10 0 10 10v40H14zM30 30v-8h40v8M86 50h6v10",
    "knife": "M6 44h54v10q-36 8-54-10zM60 42h34v14H60z",
    "lamp": "M34 12h32l12 34H22zM47 46h6v34h-6zM32 80h36v6H32z",
    "rug": "M14 24h72v52H14zM22 32h56v36H22zM14 24v-8M86 76v8",
    "pillow": "M14 32q36-10 72 0 8 20 0 38-36 10-72 0-8-18 0-38z",
    "duvet": "M12 24h76v56H12zM12 42h76M12 60h76M37 24v56M63 24v56",
    "towel": "M24 12h52v74H24zM24 70h52M24 76h52",
    "chair": "M32 10h36v36H32zM26 50h48v10H26zM47 60h6v16h-6zM28 84l22-10 22 10",
    "vacuum": "M26 50a18 18 0 1 0 36 0 18 18 0 1 0-36 0M56 38 80 12M80 12v66M66 78h26v8H66z",
    "toothbrush": "M44 40h12v50H44zM46 10h8v30h-8zM40 10h6v14h-6z",
    "jacket": "M34 16h32l22 16-8 18-8-4v40H28V46l-8 4-8-18zM50 16v70",
    "scarf": "M28 18q22 14 44 0v14q-22 14-44 0zM34 32h14v54H34z",
    "shirt": "M34 16q16 12 32 0l24 16-10 18-10-6v42H30V44l-10 6-10-18z",
    "wallet": "M14 30h72v46H14zM62 46h24v14H62zM14 30l8-8h58v8",
    "umbrella": "M8 52q4-38 42-38t42 38q-8-8-14 0-7-8-14 0-7-8-14 0-7-8-14 0-7-8-14 0-6-8-14 0zM50 50v30q0 8-8 8t-8-8",
    "suitcase": "M22 32h56v50H22zM38 32V14h24v18M34 40v34M66 40v34M30 82v6M70 82v6",
    "headset": "M20 56v-6a30 30 0 0 1 60 0v6M14 54h14v26H14zM72 54h14v26H72z",
    "speaker": "M28 10h44v78H28zM50 26a7 7 0 1 0 .1 0zM50 46a15 15 0 1 0 .1 0z",
    "keyboard": "M8 34h84v34H8zM14 42h72M14 50h72M26 60h48",
    "mat": "M10 66h70v12H10zM80 58a10 10 0 1 0 .1 0z",
    "pump": "M44 26h12v54H44zM30 10h40v8H30zM48 18h4v8h-4zM30 80h40v6H30z",
    "drill": "M14 26h56v20H44l-6 36H22l4-36H14zM70 32h22v6H70z",
    "hose": "M18 50a32 32 0 1 0 64 0 32 32 0 1 0-64 0M34 50a16 16 0 1 0 32 0 16 16 0 1 0-32 0",
    "planter": "M20 40h60l-8 46H28zM50 40V22q-16 0-18-14 18 0 18 14 0-14 18-14-2 14-18 14",
    "leash": "M30 16a12 12 0 1 0 .1 0zM36 36q44 0 36 30-6 20-36 12M32 76h12v8H32z",
    "kennel": "M14 46 50 16l36 30v38H14zM38 84V64a12 12 0 0 1 24 0v20",
    "puzzle": "M16 30h24q-6-16 10-16t10 16h24v22q-14-6-14 9t14 9v18H16z",
}  # fmt: skip
_BOX = "M16 34 50 18l34 16v38L50 90 16 72zM16 34l34 16 34-16M50 50v40"


def picture(product: Product, chosen: str = "") -> str:
    """An SVG of a product, in the chosen colour, else its first one, else that of its material."""
    colours = product.options.get("color", ())
    named = chosen or (colours[0] if colours else str(product.facts.get("material", "")))
    shape = _SHAPES.get(product.noun or product.query, _BOX)
    return (
        '<svg class="picture" viewBox="0 0 100 100" aria-hidden="true" focusable="false">'
        f'<path d="{shape}" fill="{_COLOURS.get(named, _PLAIN)}" fill-rule="evenodd" stroke="#1c1917" '
        'stroke-width="2" stroke-linejoin="round"/></svg>'
    )


def stars(product: Product) -> str:
    """Five stars, full ones for the rating; nothing where there is none.

    >>> stars(Product("B0", "x", "", "", 1.0, facts={"rating": 3.6}))
    '★★★★☆'
    """
    rating = product.facts.get("rating")
    return "" if not isinstance(rating, float) else "★" * round(rating) + "☆" * (5 - round(rating))
