/** Takes what looks like a credential out of free text: in log lines of our own programs, and in what rank processes write. */

const REDACTED = '[redacted]';

/** Where each begins is kept, so that a reader sees what was there. */
const CREDENTIALS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  // A password in a URL.
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/[^\s:/@]{0,200}):[^\s@/]{1,1000}@/gi, `$1:${REDACTED}@`],
  [/\b(bearer|basic)\s+[\w.~+/=-]+/gi, `$1 ${REDACTED}`],
  // API keys of this program, secrets of its webhooks.
  [/\b(zf_)[\w-]{20,}/g, `$1${REDACTED}`],
  [/\b(whsec_)[\w+/=-]{8,}/g, `$1${REDACTED}`],
  // Parameters of a URL, also of one that is encoded to be a parameter of another.
  [
    /((?:[?&]|%3f|%26)[\w.-]{0,40}(?:token|secret|password|passwd|signature|credential|api[_-]?key)(?:=|%3d))[^&\s"'\\]+/gi,
    `$1${REDACTED}`,
  ],
  // Ids of AWS access keys, and what signs a presigned URL.
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, `$1${REDACTED}`],
  [/\b(X-Amz-(?:Signature|Security-Token|Credential)=)[^\s&"']+/gi, `$1${REDACTED}`],
  // Tokens of GitHub and of Hugging Face.
  [/\b(gh[pousr]_|github_pat_|hf_)[A-Za-z0-9_]{20,}/g, `$1${REDACTED}`],
  // `password=…`, `"secret_access_key": "…"`, `AWS_SECRET_ACCESS_KEY: …`
  [
    /((?:secret|password|passwd|api[_-]?key|access[_-]?key|(?:auth|access|session|security|refresh)[_-]?token)\w{0,20}\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?)[^\s"'\\,;&}[]{8,}/gi,
    `$1${REDACTED}`,
  ],
];

export function redactText(text: string): string {
  return CREDENTIALS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), text);
}

/** Names of environment variables whose values are secret. */
const SECRET_NAME = /SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|REDIS_URL/i;
/** A shorter value is also found where it is no secret. */
const SHORTEST_SECRET = 8;

/** `redactText`, and the values of this environment's secret variables as well, wherever they stand. */
export function redactorOf(env: Readonly<Record<string, string | undefined>>): (text: string) => string {
  const secrets = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && SECRET_NAME.test(name) ? partsOf(value) : [],
  );
  const found = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET);
  // The longest first: one secret may be the beginning of another.
  found.sort((a, b) => b.length - a.length);
  return (text) =>
    redactText(
      found.reduce(
        (rest, secret) => (rest.includes(secret) ? rest.replaceAll(secret, REDACTED) : rest),
        text,
      ),
    );
}

/** A value of several lines is written as several; the password of a URL may also be written alone. */
function partsOf(value: string): string[] {
  const password = URL.canParse(value) ? new URL(value).password : '';
  const parts = [...value.split(/\r?\n/), password, decoded(password)].map((part) => part.trim());
  // In a line of JSON quotes and backslashes are escaped.
  return parts.flatMap((part) => [part, JSON.stringify(part).slice(1, -1)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
