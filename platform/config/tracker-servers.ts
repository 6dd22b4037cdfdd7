/**
 * Parser of `ZEROFLEET_MLFLOW_CREDENTIALS`, `ZEROFLEET_WANDB_CREDENTIALS` and `ZEROFLEET_GRADER_CREDENTIALS`: servers
 * that jobs and graders name, with their credentials.
 */
import { Check, type Static, Type } from '../schema.js';

const strict = { additionalProperties: false };
const text = Type.String({ minLength: 1, maxLength: 4096, pattern: '^[\\x20-\\x7e]+$' });

const TrackerServer = Type.Object(
  {
    url: Type.String({ pattern: '^https?://[^?#@\\s]+$' }),
    /** Bearer token of MLflow; API key of W&B and of a model server. */
    token: Type.Optional(text),
    /** Name and password of HTTP's basic authentication, instead of a token. */
    username: Type.Optional(text),
    password: Type.Optional(text),
    /** Projects whose jobs may name it; all if absent. */
    projects: Type.Optional(Type.Array(Type.String())),
  },
  strict,
);
export type TrackerServer = Static<typeof TrackerServer>;
const server = new Check(TrackerServer);

/** Returns a server that a project may name; null if there is none. */
export function serverOf(
  servers: ReadonlyMap<string, TrackerServer>,
  name: string,
  project: string,
): TrackerServer | null {
  const server = servers.get(name);
  return server && (server.projects?.includes(project) ?? true) ? server : null;
}

/** Value of the header `authorization`; null without credentials. */
export function authorizationOf({ token, username, password }: Partial<TrackerServer>): string | null {
  if (token !== undefined) return `Bearer ${token}`;
  if (username === undefined || password === undefined) return null;
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

const NAME = /^[a-z0-9][a-z0-9-]{0,39}$/;
const EXAMPLE = '{"main": {"url": "https://tracker.example.com", "token": "…"}}';

/** Parses `none` or JSON. No value is part of an error: it may be a secret. */
export function trackerServers(given: string): ReadonlyMap<string, TrackerServer> {
  if (given === 'none') return new Map();
  const entries = Object.entries(objectOf(given));
  return new Map(
    entries.map(([name, value]) => {
      if (!NAME.test(name)) throw new Error('a name has 1 to 40 lower-case letters, digits and hyphens');
      if (!server.fits(value) || !URL.canParse(value.url))
        throw new Error(
          `the server ${name} needs a url without user, query and fragment, and may have token, username, password, projects; an example is ${EXAMPLE}`,
        );
      const isBasic = value.username !== undefined && value.password !== undefined;
      const isNone = value.username === undefined && value.password === undefined;
      if (!(isNone || (isBasic && value.token === undefined)))
        throw new Error(`the server ${name} has either a token, or a username and a password`);
      return [name, value];
    }),
  );
}

function objectOf(given: string): object {
  try {
    const value: unknown = JSON.parse(given);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The error of JSON.parse quotes the text.
  }
  throw new Error(`must be none or a JSON object such as ${EXAMPLE}`);
}
