import { ZerofleetError } from '../../contracts/index.js';

export interface RedisNode {
  host: string;
  port: number;
}

/** Where Redis is, and what a write needs: a parsed `ZEROFLEET_REDIS_URL`. */
export interface RedisAddress {
  server:
    | { kind: 'socket'; path: string }
    | { kind: 'single'; node: RedisNode }
    /** `primary`: the name under which the sentinels watch it. */
    | { kind: 'sentinel'; nodes: RedisNode[]; primary: string; password: string | undefined }
    | { kind: 'cluster'; nodes: RedisNode[] };
  login: { username?: string; password?: string };
  db: number;
  tls: boolean;
  /** Number of replicas that must have a write before it is acknowledged. */
  replicas: number;
}

const FORMS = [
  'redis://host:port/db',
  'redis+sentinel://host:port,host:port/name-of-primary/db',
  'redis+cluster://host:port,host:port',
  'unix:///path/to/socket',
];
/** The parts of a URL: `URL` takes one host only. */
const PARTS =
  /^(?<protocol>unix|(?<tls>redis|rediss)(?:\+(?<kind>sentinel|cluster))?):\/\/(?:(?<login>[^/]*)@)?(?<hosts>[^/?#]*)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?$/;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26379;
const MOST_REPLICAS = 5;

/** @throws ZerofleetError `invalid_configuration` */
export function redisAddress(url: string): RedisAddress {
  const parts = PARTS.exec(url)?.groups;
  if (!parts) throw invalid(`a Redis URL is ${FORMS.join(', ')}; rediss for TLS`);
  const { kind = parts.protocol === 'unix' ? 'socket' : 'single', hosts = '', path = '' } = parts;
  const query = new URLSearchParams(parts.query ?? '');
  const server = SERVERS[kind as keyof typeof SERVERS]({ hosts, path, query });
  for (const name of query.keys()) {
    if (name !== 'replicas' && !(name === 'sentinel_password' && kind === 'sentinel'))
      throw invalid(`a Redis URL of this kind has no parameter ${name}`);
  }
  return {
    db: 0,
    ...server,
    login: loginOf(parts.login ?? ''),
    tls: parts.tls === 'rediss',
    replicas: replicasOf(query, kind),
  };
}

interface UrlParts {
  hosts: string;
  /** With its leading slash, or empty. */
  path: string;
  query: URLSearchParams;
}

/** Each kind of server by its part of the URL. */
const SERVERS = {
  socket({ hosts, path }: UrlParts) {
    if (hosts || !path) throw invalid('unix:// takes an absolute path: unix:///path/to/socket');
    return { server: { kind: 'socket', path: decoded(path) } };
  },
  single({ hosts, path }: UrlParts) {
    if (hosts.includes(',')) throw invalid('several hosts need redis+sentinel:// or redis+cluster://');
    return { server: { kind: 'single', node: nodeOf(hosts, REDIS_PORT) }, db: dbOf(path.slice(1)) };
  },
  sentinel({ hosts, path, query }: UrlParts) {
    const [, primary = '', db = ''] = path.split('/');
    if (!primary) throw invalid('redis+sentinel://host:port/primary needs the name of the primary');
    const password = query.get('sentinel_password') ?? undefined;
    const nodes = nodesOf(hosts, SENTINEL_PORT);
    return {
      server: { kind: 'sentinel', nodes, primary: decoded(primary), password },
      db: dbOf(db),
    };
  },
  cluster({ hosts, path }: UrlParts) {
    if (path.length > 1) throw invalid('a Redis Cluster has one database: leave out the path');
    return { server: { kind: 'cluster', nodes: nodesOf(hosts, REDIS_PORT) } };
  },
} satisfies Record<string, (parts: UrlParts) => Pick<RedisAddress, 'server'> & { db?: number }>;

const nodesOf = (hosts: string, port: number) => hosts.split(',').map((host) => nodeOf(host, port));

function nodeOf(text: string, port: number): RedisNode {
  if (!URL.canParse(`redis://${text}`)) throw invalid('each host is host, host:port or [IPv6]:port');
  const { hostname, port: given } = new URL(`redis://${text}`);
  return { host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(given || port) };
}

function loginOf(text: string): RedisAddress['login'] {
  const [username = '', ...rest] = text.split(':');
  const password = rest.join(':');
  return {
    ...(username && { username: decoded(username) }),
    ...(password && { password: decoded(password) }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('user, password and path are percent-encoded');
  }
}

function dbOf(text: string): number {
  if (!/^\d*$/.test(text)) throw invalid('the database is a number');
  return Number(text || 0);
}

/** Sentinels and clusters fail over, which would lose writes that no replica has. */
function replicasOf(query: URLSearchParams, kind: string): number {
  const text = query.get('replicas');
  if (text === null) return kind === 'sentinel' || kind === 'cluster' ? 1 : 0;
  const replicas = /^\d$/.test(text) ? Number(text) : Number.NaN;
  if (!(replicas <= MOST_REPLICAS)) throw invalid(`replicas is a whole number from 0 to ${MOST_REPLICAS}`);
  return replicas;
}

/** The value stays out of the message: it may hold a password. */
function invalid(message: string): ZerofleetError {
  return new ZerofleetError('invalid_configuration', message);
}
