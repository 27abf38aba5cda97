from support.web import Web
async def test_smoke(web: Web) -> None:
    owner = await web.client()
    sid = await web.session(owner, title="Trip")
    r = await web.say(owner, sid, "hello there")
    print(r)
    print((await owner.get(f"/api/sessions/{sid}")).json())
    print((await owner.get(f"/api/sessions/{sid}/messages")).json())
    print((await owner.get(f"/api/sessions")).json())
    print((await owner.get("/api/search", params={"text": "hello"})).json())
    print((await owner.get("/api/usage")).text)
    print((await owner.get("/metrics")).text[-1500:])
    ada = await web.client("ada")
    print((await ada.get(f"/api/sessions/{sid}")).text)
    print((await ada.get(f"/api/sessions?all=true")).text)
    import json
    __import__("pathlib").Path("/tmp/openapi.json").write_text(json.dumps((await owner.get("/api/openapi.json")).json(), indent=1))
