import type { FieldError, Integration } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import type { MlflowServer } from '../../platform/config/mlflow-servers.js';
import type { AddressPolicy } from '../webhooks/addresses.js';

/** A server that a job may reach. */
export interface Tracker {
  url: string;
  /** Value of the header `authorization`; null without credentials. */
  authorization: string | null;
}

/** The servers to which jobs may forward their metrics: those that the operator configured, and public ones. */
export class Trackers {
  /** @param policy also for configured servers */
  constructor(
    private readonly servers: ReadonlyMap<string, MlflowServer>,
    readonly policy: AddressPolicy,
  ) {}

  /** Returns the error of an integration of a new job, or null. The pointer begins at the integration. */
  faultOf({ server, url }: Integration, project: string): FieldError | null {
    if (url !== undefined) {
      const objection = this.policy.objectionTo(url);
      if (objection === null) return null;
      return { pointer: '/url', code: 'integration_url_refused', message: objection };
    }
    if (server === undefined || this.allowed(server, project) !== null) return null;
    const known = [...this.servers.keys()].filter((name) => this.allowed(name, project) !== null);
    const suggestion = nearestName(server, known);
    const message =
      known.length === 0
        ? 'the operator has configured no servers (ZEROFLEET_MLFLOW_CREDENTIALS); use url for one without credentials'
        : `there is no server ${server}; the operator has configured ${known.join(', ')}`;
    return {
      pointer: '/server',
      code: 'integration_server_not_found',
      message,
      ...(suggestion && { suggestion }),
    };
  }

  /** Returns null if the operator has removed the server. */
  find({ server, url }: Integration, project: string): Tracker | null {
    if (url !== undefined) return { url, authorization: null };
    const found = server === undefined ? null : this.allowed(server, project);
    return found && { url: found.url, authorization: authorizationOf(found) };
  }

  private allowed(name: string, project: string): MlflowServer | null {
    const server = this.servers.get(name);
    return server && (server.projects?.includes(project) ?? true) ? server : null;
  }
}

function authorizationOf({ token, username, password }: MlflowServer): string | null {
  if (token !== undefined) return `Bearer ${token}`;
  if (username === undefined || password === undefined) return null;
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
