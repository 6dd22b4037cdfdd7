/** Commands and programs that send a document. */
import { type Draft, isObject } from './draft.js';

export type Language = 'curl' | 'command line' | 'TypeScript' | 'Python';

interface Target {
  /** Address of the API. */
  baseUrl: string;
  draft: Draft;
}

const json = (draft: Draft) => JSON.stringify(draft, null, 2);

/** A word of a POSIX shell. */
export const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

export const COMMANDS: Readonly<Record<Language, (target: Target) => string>> = {
  curl: ({ baseUrl, draft }) =>
    `curl -H "Authorization: Bearer $ZEROFLEET_API_KEY" --json ${quoted(json(draft))} ${quoted(`${baseUrl}/v1/jobs`)}\n`,
  'command line': ({ baseUrl, draft }) =>
    `export ZEROFLEET_URL=${quoted(baseUrl)}\nprintf %s ${quoted(json(draft))} | zerofleet submit - --watch\n`,
  TypeScript: ({ baseUrl, draft }) =>
    [
      "import { Zerofleet } from '@zerofleet/client';",
      '',
      `const zerofleet = new Zerofleet({ baseUrl: ${JSON.stringify(baseUrl)}, apiKey: process.env.ZEROFLEET_API_KEY });`,
      `const job = await zerofleet.jobs.create(${json(draft)});`,
      'console.log(job.id);',
      '',
    ].join('\n'),
  // The client reads the key from the environment.
  Python: ({ baseUrl, draft }) =>
    [
      'from zerofleet import Zerofleet',
      '',
      `client = Zerofleet(${pythonOf(baseUrl)})`,
      `job = client.jobs.create(${pythonOf(draft)})`,
      'print(job["id"])',
      '',
    ].join('\n'),
};

/** A value of JSON as a literal of Python, with the same indentation. */
export function pythonOf(value: unknown, indent = ''): string {
  const inner = `${indent}  `;
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value))
    return bracketed(
      '[]',
      value.map((item) => pythonOf(item, inner)),
      indent,
    );
  if (isObject(value)) {
    const members = Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}: ${pythonOf(member, inner)}`,
    );
    return bracketed('{}', members, indent);
  }
  // Strings of JSON are strings of Python, but for halves of characters, which no document has.
  return JSON.stringify(value);
}

function bracketed([open = '', close = '']: string, members: readonly string[], indent: string): string {
  if (members.length === 0) return open + close;
  return `${open}\n${members.map((member) => `${indent}  ${member},\n`).join('')}${indent}${close}`;
}
