//! Fields whose names say what fact they hold.

use serde_json::Value;

use super::machine_words::lower;
use super::text::head;
use super::walk::{MAX_CODE, MAX_FACTS, Walk};

impl Walk {
    /// Takes a field that is a fact or an echo. False: it may hold text.
    pub(crate) fn fact(&mut self, name: &str, value: &Value, has_message: bool) -> bool {
        match name {
            "status" | "statuscode" | "httpstatus" | "httpstatuscode" | "apierrorstatus" | "httpcode" => {
                self.status_or_code(value);
                if let Some(word) = value.as_str() {
                    match lower(word).as_str() {
                        "error" | "failed" | "failure" | "denied" | "timeout" => self.failed = true,
                        "ok" | "success" | "completed" => self.worked = true,
                        _ => {}
                    }
                }
                !value.is_object()
            }
            "code" | "errorcode" | "errcode" | "errno" => {
                self.status_or_code(value);
                !value.is_object()
            }
            "type" | "name" | "reason" | "errortype" | "apierrortype" | "apierror" | "quotaid" | "subtype"
            | "exceptiontype" | "exceptionname" | "exitcodemeaning" | "xamznerrortype" => match value.as_str() {
                Some(word) if word.contains(' ') && word.len() > 40 => false,
                Some(word) => {
                    let word = lower(word);
                    self.failed |= word == "error" || word.ends_with("error") || word.ends_with("exception");
                    self.code(&word);
                    true
                }
                None => false,
            },
            "finishreason" | "stopreason" | "donereason" | "blockreason" | "terminalreason" => {
                if let Some(word) = value.as_str() {
                    self.code(&format!("finish:{}", lower(word)));
                }
                true
            }
            "headers" | "responseheaders" => {
                if let Value::Object(headers) = value {
                    for (key, value) in headers.iter().take(MAX_FACTS - self.headers.len().min(MAX_FACTS)) {
                        let text = match value {
                            Value::String(text) => head(text, MAX_CODE).to_owned(),
                            Value::Number(number) => number.to_string(),
                            _ => continue,
                        };
                        self.headers.push((lower(key), text));
                    }
                }
                true
            }
            "exitcode" | "exit" | "agentrc" | "returncode" | "exitstatus" => {
                if let Some(code) = value.as_i64() {
                    self.exit_code = Some(code);
                    self.failed |= code != 0;
                    self.worked |= code == 0;
                    // As shells and as programs that start others tell a signal; 130 is the user's own.
                    if matches!(code, 129 | 131..=159 | -64..=-3) {
                        self.code("exit:signal");
                    }
                }
                true
            }
            "signal" => {
                if let Some(signal) = value.as_str() {
                    self.signal = Some(head(signal, MAX_CODE).to_owned());
                    self.failed = true;
                }
                true
            }
            "success" | "ok" => match value.as_bool() {
                Some(worked) => {
                    self.failed |= !worked;
                    self.worked |= worked;
                    true
                }
                None => false,
            },
            "iserror" => {
                self.failed |= value.as_bool() == Some(true);
                self.worked |= value.as_bool() == Some(false);
                true
            }
            "tool" | "toolname" => {
                if let (None, Some(tool)) = (&self.tool, value.as_str()) {
                    self.tool = Some(head(tool, MAX_CODE).to_owned());
                }
                !value.is_object()
            }
            "command" | "cmd" => {
                if let Some(command) = value.as_str() {
                    self.command = Some(head(command, MAX_CODE).to_owned());
                }
                true
            }
            "role" => {
                self.role = value.as_str().map(lower);
                true
            }
            "stack" => has_message,
            // What was sent, not what went wrong.
            "input" | "request" | "requestbody" | "requestbodyvalues" | "prompt" | "arguments" | "args"
            | "messages" | "tools" | "usage" | "usagemetadata" | "id" | "sessionid" | "uuid" | "timestamp" | "cwd"
            | "path" | "param" | "params" | "requestid" | "userid" | "links" | "url" | "documentationurl"
            | "suggestion" => true,
            "body" | "data" | "error" | "result" if value.as_str().is_some_and(str::is_empty) => true,
            _ => self.number(name, value),
        }
    }
}
