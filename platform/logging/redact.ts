/**
 * Redacts credentials in free text: in log lines of zerofleet's programs, and in the output of rank
 * processes.
 */

const REDACTED = '[redacted]';

/** Patterns of credentials. The beginning is kept, so that a reader sees what was there. */
const CREDENTIALS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  // Password in a URL.
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/[^\s:/@]{0,200}):[^\s@/]{1,1000}@/gi, `$1:${REDACTED}@`],
  [/\b(bearer|basic)\s+[\w.~+/=-]+/gi, `$1 ${REDACTED}`],
  // API keys of zerofleet, and webhook secrets.
  [/\b(zf_)[\w-]{20,}/g, `$1${REDACTED}`],
  [/\b(whsec_)[\w+/=-]{8,}/g, `$1${REDACTED}`],
  // Parameters of a URL, also of one that is encoded as a parameter of another.
  [
    /((?:[?&]|%3f|%26)[\w.-]{0,40}(?:token|secret|password|passwd|signature|credential|api[_-]?key)(?:=|%3d))[^&\s"'\\]+/gi,
    `$1${REDACTED}`,
  ],
  // Ids of AWS access keys, and the signature parts of a presigned URL.
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, `$1${REDACTED}`],
  [/\b(X-Amz-(?:Signature|Security-Token|Credential)=)[^\s&"']+/gi, `$1${REDACTED}`],
  // Tokens of GitHub and Hugging Face.
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
export const SECRET_NAME =
  /SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|REDIS_URL/i;
/** Shorter values would also match text that is no secret. */
const SHORTEST_SECRET = 8;

/** Returns `redactText` extended by the values of the environment's secret variables. */
export function redactorOf(env: Readonly<Record<string, string | undefined>>): (text: string) => string {
  const secrets = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && SECRET_NAME.test(name) ? partsOf(value) : [],
  );
  const found = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET);
  // Longest first, because one secret may be the prefix of another.
  found.sort((a, b) => b.length - a.length);
  return (text) =>
    redactText(
      found.reduce(
        (rest, secret) => (rest.includes(secret) ? rest.replaceAll(secret, REDACTED) : rest),
        text,
      ),
    );
}

/**
 * Splits a value: a value of several lines is logged as several, and the passwords of a URL may occur alone.
 */
function partsOf(value: string): string[] {
  // `URL` does not parse the URLs that have several hosts.
  const patterns = [/^[a-z][a-z0-9+.-]*:\/\/[^/:@]*:([^/]*)@/i, /[?&]\w*password=([^&#]*)/i];
  const passwords = patterns.map((pattern) => pattern.exec(value)?.[1] ?? '');
  // Secrets inside of JSON may occur alone, too.
  for (const [, text = ''] of value.matchAll(/"(?:token|password)"\s*:\s*("(?:[^"\\]|\\.)*")/g))
    passwords.push(unquoted(text));
  const parts = [...value.split(/\r?\n/), ...passwords, ...passwords.map(decoded)].map((part) => part.trim());
  // Quotes and backslashes are escaped in a line of JSON.
  return parts.flatMap((part) => [part, JSON.stringify(part).slice(1, -1)]);
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
