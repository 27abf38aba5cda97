"""The page behind a reverse proxy below a path: everything works, and no request leaves that path."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.async_api import expect

from browser.conftest import send_message, skip_welcome, wait_for_answer
from browser.test_files import build_upload, expect_image_loaded
from support.process import find_free_port, run_server
from support.proxy import Proxy

if TYPE_CHECKING:
    from pathlib import Path

    from browser.conftest import Visitors
    from support.warm_process import WarmLauncher


def create_tls_context(folder: Path) -> ssl.SSLContext:
    """Create a TLS context with a self-signed certificate for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        # Without a proxy, test_panels.py has the page below a path.
        pytest.param("passes the path on", marks=pytest.mark.soak),
        "takes the path away and speaks HTTPS",
    ],
)
async def test_everything_works_below_a_path(
    launcher: WarmLauncher, tmp_path: Path, visitors: Visitors, kind: str
) -> None:
    is_stripping = kind.startswith("takes")
    proxy = Proxy(
        "/palaver",
        strips_path=is_stripping,
        tls=create_tls_context(tmp_path) if is_stripping else None,
        upstream=find_free_port(),
    )
    async with proxy.running():
        settings = f"web:\n  public_url: {proxy.url}\n  trusted_proxies: [127.0.0.1]\n"
        (tmp_path / "config.yaml").write_text(settings)
        async with run_server(launcher, tmp_path, proxy.upstream) as link:
            await use_all_features(visitors, proxy, link)
    assert proxy.unmatched_targets == []


async def use_all_features(visitors: Visitors, proxy: Proxy, link: str) -> None:
    assert link.startswith(f"{proxy.url}/sign-in#")
    context = await visitors.open_context(proxy.url, service_workers="allow")
    page = await context.new_page()
    await page.goto(link)
    await skip_welcome(page)
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    assert page.url == f"{proxy.url}/"

    await page.locator("input[type=file]").set_input_files(build_upload("dot.png"))
    await expect(page.locator(".draft-files .file")).to_have_attribute("aria-busy", "false")
    await send_message(page, f"think about {' '.join(f'thing{number}' for number in range(60))}")
    answer = page.locator(".answer")
    await expect(answer.and_(page.locator("[aria-busy=true]")).locator(".reasoning")).to_contain_text(
        "thing1"
    )  # streams
    await page.reload()
    await wait_for_answer(page)
    await expect(page.locator(".user-message")).to_have_count(1)
    await expect_image_loaded(page, "dot.png")

    scope = await page.evaluate("async () => (await navigator.serviceWorker.ready).scope")
    assert scope == f"{proxy.url}/"
    manifest = await (await context.new_cdp_session(page)).send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert manifest["url"].startswith(f"{proxy.url}/")
    assert manifest["manifest"]["scope"] == f"{proxy.url}/"
    assert manifest["manifest"]["startUrl"] == f"{proxy.url}/"

    await page.locator("header").get_by_role("button", name="Actions for").click()
    await page.get_by_role("menuitem", name="Share").click()
    await page.get_by_role("button", name="Create link").click()
    shared = await page.get_by_role("textbox", name="Shared link").input_value()
    assert shared.startswith(f"{proxy.url}/shared#")
    await page.get_by_role("button", name="Done").click()
    outside = await visitors.open_context(proxy.url)
    stranger = await outside.new_page()
    await stranger.goto(shared)
    await expect(stranger.locator(".user-message").first).to_contain_text("think about thing0")

    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="People").click()
    await page.get_by_role("button", name="Invite someone").click()
    await page.get_by_label("Name", exact=True).fill("Amina")
    await page.get_by_role("dialog").get_by_role("button", name="Invite someone").click()
    invitation = await page.get_by_role("textbox", name="Sign-in link").input_value()
    await stranger.goto(invitation)
    await skip_welcome(stranger)
    await expect(stranger.get_by_role("heading", name="Hello, Amina")).to_be_visible()

    await page.goto(proxy.url)  # without a trailing slash
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    for cookie in await context.cookies():
        assert cookie["path"] == urlsplit(proxy.url).path
        assert cookie["secure"] is (proxy.scheme == "https")
        assert re.fullmatch(r"(__Secure-palaver|palaver-\d+)(-device)?", cookie["name"])
    await outside.close()
    await context.close()
