//! A headless Chromium, controlled over the DevTools protocol through a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Command-line options: headless, without background traffic, controlled through a pipe.
const OPTIONS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
                       --disable-component-update --disable-sync --hide-scrollbars --window-size=1400,1000 \
                       --remote-debugging-pipe";

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    session: String,
    number: u64,
    complaints: Vec<String>,
}

impl Browser {
    /// Starts the browser with a profile in `folder`; without a browser the calling test skips. On a busy machine
    /// Chromium sometimes exits before its first answer, so it gets three attempts.
    ///
    /// # Panics
    /// If it does not start, with what it wrote to standard error.
    pub fn start(folder: &Path) -> Option<Browser> {
        if !crate::has_optional("chromium", "run scripts/setup.sh --browser") {
            return None;
        }
        let profiles = ["first", "second", "third"].map(|attempt| folder.join(attempt));
        let started = profiles.iter().find_map(|profile| Browser::spawn(profile));
        let mut browser = started.unwrap_or_else(|| {
            let written = profiles.map(|profile| std::fs::read_to_string(profile.with_extension("stderr")));
            panic!("the browser does not start: {written:?}")
        });
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_string();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    /// Starts the browser once; `None` if it exits before it answers. Its standard error goes to `PROFILE.stderr`.
    fn spawn(profile: &Path) -> Option<Browser> {
        std::fs::create_dir_all(profile).expect("a profile folder");
        let stderr = std::fs::File::create(profile.with_extension("stderr")).expect("a file next to the profile");
        // The protocol uses the descriptors 3 and 4, to which the shell connects standard input and output.
        let command = format!("exec chromium {OPTIONS} --user-data-dir=\"$0\" about:blank 3<&0 4>&1 >/dev/null");
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .arg(profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("a shell");
        let (mut to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("a pipe")));
        let asked = to.as_mut().expect("a pipe").write_all(b"{\"id\":0,\"method\":\"Browser.getVersion\"}\0");
        let mut browser = Browser { child, to, from, session: String::new(), number: 0, complaints: Vec::new() };
        let mut answer = Vec::new();
        let answers = asked.is_ok() && browser.from.read_until(0, &mut answer).is_ok() && !answer.is_empty();
        answers.then_some(browser)
    }

    /// Opens a file and waits until it is loaded.
    ///
    /// # Panics
    /// Like all calls: if the browser does not answer, or answers with an error.
    pub fn open(&mut self, path: &Path) {
        self.open_address(&format!("file://{}", path.display()));
    }

    /// Opens an address and waits until it is loaded.
    ///
    /// # Panics
    /// As [`Browser::open`].
    pub fn open_address(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        while self.message()["method"] != "Page.loadEventFired" {}
        // Two frames later everything is drawn.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
    }

    /// Evaluates an expression on the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let found = self.call("Runtime.evaluate", parameters);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {}", found["exceptionDetails"]);
        found["result"]["value"].clone()
    }

    /// Scrolls an element into view and returns its center.
    pub fn middle_of(&mut self, selector: &str) -> [f64; 2] {
        let place = self.evaluate(&format!(
            "(e => {{ e.scrollIntoView({{ block: 'center' }}); const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})(document.querySelector('{selector}'))"
        ));
        [0, 1].map(|i| place[i].as_f64().expect("a place"))
    }

    /// Turns the wheel at a place.
    pub fn wheel(&mut self, x: f64, y: f64, by: f64) {
        let wheel = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by });
        self.call("Input.dispatchMouseEvent", wheel);
        self.settle();
    }

    /// Moves the pointer to a place.
    pub fn hover(&mut self, x: f64, y: f64) {
        for step in [3.0, 1.0, 0.0] {
            self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x - step, "y": y }));
        }
        self.settle();
    }

    /// Resizes the page's window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.settle();
    }

    /// Selects the dark or the light color scheme.
    pub fn dark(&mut self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", feature);
        self.settle();
    }

    /// Shows the page as it would print, or as on a screen.
    pub fn print(&mut self, print: bool) {
        let media = if print { "print" } else { "" };
        self.call("Emulation.setEmulatedMedia", json!({ "media": media }));
        self.settle();
    }

    /// Presses and releases the left button at a place.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let button = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", button);
        }
        self.settle();
    }

    /// Moves the pointer along places while the left button is pressed.
    pub fn drag(&mut self, places: &[[f64; 2]]) {
        let mut mouse = |kind: &str, [x, y]: [f64; 2], buttons: u32| {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        };
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
        mouse("mousePressed", *first, 1);
        for pair in places.windows(2) {
            for step in 1..=8 {
                let part = f64::from(step) / 8.0;
                mouse("mouseMoved", [0, 1].map(|i| pair[0][i] + (pair[1][i] - pair[0][i]) * part), 1);
            }
        }
        mouse("mouseReleased", *last, 0);
        self.settle();
    }

    /// Console errors and warnings, and exceptions, since the start.
    pub fn complaints(&mut self) -> Vec<String> {
        self.settle();
        self.complaints.clone()
    }

    fn settle(&mut self) {
        self.evaluate("new Promise(done => setTimeout(() => done(1), 300))");
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let number = self.number;
        let mut message = json!({ "id": number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let to = self.to.as_mut().expect("an open pipe");
        to.write_all(format!("{message}\0").as_bytes()).and_then(|()| to.flush()).expect("the browser reads");
        loop {
            let answer = self.message();
            if answer["id"] == number {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// Reads the next message and records complaints.
    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("the browser answers");
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes).expect("the browser speaks JSON");
        let (method, told) = (message["method"].as_str().unwrap_or(""), &message["params"]);
        let bad = match method {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => ["error", "warning", "assert"].iter().any(|kind| told["type"] == *kind),
            "Log.entryAdded" => ["error", "warning"].iter().any(|level| told["entry"]["level"] == *level),
            _ => false,
        };
        if bad {
            self.complaints.push(told.to_string());
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends when its pipe closes; one that hangs is killed.
        self.to.take();
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
