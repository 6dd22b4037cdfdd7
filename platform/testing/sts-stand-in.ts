/**
 * In-memory stand-in for the STS calls of an agent, over the AWS Query protocol (form in, XML out), with IAM
 * evaluation of a session's own policy. Throttling, refusals, outages and the duration of sessions are
 * configurable. Excluded: signatures, and the policies of roles.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StandInRequest } from './s3-stand-in.js';

interface Statement {
  Action: string[];
  Resource: string[];
  Condition?: { StringLike: { 's3:prefix': string[] } };
}

interface StandInSession {
  role: string;
  name: string;
  seconds: number;
  tags: Record<string, string>;
  statements: Statement[];
  token: string;
  expires_at: number;
}

type StsMood = 'well' | 'throttling' | 'refusing' | 'away';

export class StsStandIn {
  /** By access key id, in order of creation. */
  readonly sessions = new Map<string, StandInSession>();
  mood: StsMood = 'well';
  /** Duration of sessions. */
  lifeMs = 3_600_000;
  /** Number of requests, answered or not. */
  asked = 0;
  private closeServer: () => Promise<void> = async () => undefined;

  /** @param bucket the only existing bucket */
  constructor(private readonly bucket: string) {}

  /**
   * Starts the server.
   * @returns the endpoint
   */
  async listen(): Promise<string> {
    const server = createServer((request, response) => {
      this.asked += 1;
      if (this.mood === 'away') {
        request.socket.resetAndDestroy();
        return;
      }
      this.answer(request).then(
        ([status, text]) => response.writeHead(status, { 'content-type': 'text/xml' }).end(text),
        () => response.writeHead(500).end(),
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.closeServer = async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    };
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    return this.closeServer();
  }

  /**
   * Returns the error code of S3 for a session's request, or null to allow it. Keys of other credentials are
   * allowed.
   */
  judge({ access_key_id, session_token, action, key }: StandInRequest): string | null {
    const session = this.sessions.get(access_key_id);
    if (!session) return null;
    if (session.token !== session_token) return 'InvalidToken';
    if (Date.now() >= session.expires_at) return 'ExpiredToken';
    const arn = `arn:aws:s3:::${this.bucket}`;
    const allowed = session.statements.some(({ Action, Resource, Condition }) => {
      if (!Action.includes(action)) return false;
      if (action !== 's3:ListBucket') return Resource.some((pattern) => isLike(`${arn}/${key}`, pattern));
      return (
        Resource.includes(arn) && (Condition?.StringLike['s3:prefix'] ?? []).some((it) => isLike(key, it))
      );
    });
    return allowed ? null : 'AccessDenied';
  }

  private async answer(request: IncomingMessage): Promise<[number, string]> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    if (this.mood === 'throttling') return failure(400, 'Throttling', 'Rate exceeded');
    if (this.mood === 'refusing')
      return failure(403, 'AccessDenied', 'not authorized to perform: sts:AssumeRole');
    return this.assumeRole(new URLSearchParams(Buffer.concat(pieces).toString()));
  }

  private assumeRole(form: URLSearchParams): [number, string] {
    if (form.get('Action') !== 'AssumeRole') return failure(400, 'InvalidAction', `${form.get('Action')}`);
    const seconds = Number(form.get('DurationSeconds'));
    const name = form.get('RoleSessionName') ?? '';
    const policy = form.get('Policy') ?? '';
    if (!(seconds >= 900 && seconds <= 3600) || !/^[\w+=,.@-]{2,64}$/.test(name) || policy.length > 2048)
      return failure(400, 'ValidationError', 'a value at a parameter failed to satisfy a constraint');
    const id = `ASIASTANDIN${String(this.sessions.size + 1).padStart(9, '0')}`;
    const expiresAt = Date.now() + this.lifeMs;
    const token = `token-of-${id}`;
    const { Statement: statements } = JSON.parse(policy);
    const tags = tagsOf(form);
    this.sessions.set(id, {
      role: form.get('RoleArn') ?? '',
      name,
      seconds,
      tags,
      statements,
      token,
      expires_at: expiresAt,
    });
    const credentials = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>secret-of-${id}</SecretAccessKey><SessionToken>${token}</SessionToken><Expiration>${new Date(expiresAt).toISOString()}</Expiration>`;
    const result = `<AssumeRoleResult><Credentials>${credentials}</Credentials></AssumeRoleResult>`;
    return [
      200,
      `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">${result}</AssumeRoleResponse>`,
    ];
  }
}

function tagsOf(form: URLSearchParams): Record<string, string> {
  const tags: Record<string, string> = {};
  for (let i = 1; form.has(`Tags.member.${i}.Key`); i++)
    tags[form.get(`Tags.member.${i}.Key`) ?? ''] = form.get(`Tags.member.${i}.Value`) ?? '';
  return tags;
}

/** Matches IAM patterns: a star is any number of characters. */
function isLike(text: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(text);
}

function failure(status: number, code: string, message: string): [number, string] {
  const error = `<Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error>`;
  return [status, `<ErrorResponse>${error}<RequestId>1</RequestId></ErrorResponse>`];
}
