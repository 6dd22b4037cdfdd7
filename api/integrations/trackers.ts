import type { FieldError, FieldErrorCode, Integration } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import { authorizationOf, serverOf, type TrackerServer } from '../../platform/config/tracker-servers.js';
import type { AddressPolicy } from '../../platform/outgoing/addresses.js';

/** A server that a job may reach. */
export interface Tracker {
  url: string;
  /** Value of the header `authorization`; null without credentials. */
  authorization: string | null;
}

type TrackerType = Integration['type'];

/** The configured servers of each type by name. */
export type TrackerServers = Readonly<Record<TrackerType, ReadonlyMap<string, TrackerServer>>>;

/** Fields that only integrations of another type have. */
const FOREIGN = { mlflow: ['entity', 'project'], wandb: ['experiment', 'url'] } as const;

/** The servers to which jobs may forward their metrics: those that the operator configured, and public ones. */
export class Trackers {
  /** @param policy also for configured servers */
  constructor(
    private readonly servers: TrackerServers,
    readonly policy: AddressPolicy,
  ) {}

  /**
   * Returns the error of an integration of a new job, or null. The pointer begins at the integration.
   *
   * @param integration may lack fields that the schema refuses
   */
  faultOf(integration: Integration, project: string): FieldError | null {
    const { type, server, url } = integration;
    if (!Object.hasOwn(FOREIGN, type)) return null;
    for (const name of FOREIGN[type])
      if (integration[name] !== undefined)
        return fault(name, 'field_without_effect', `an integration of type ${type} has no ${name}`);
    if (url !== undefined) {
      const objection = this.policy.objectionTo(url);
      return objection === null ? null : fault('url', 'integration_url_refused', objection);
    }
    return server === undefined ? null : this.serverFault(type, server, project);
  }

  private serverFault(type: TrackerType, server: string, project: string): FieldError | null {
    if (this.allowed(type, server, project) !== null) return null;
    const known = [...this.servers[type].keys()].filter((name) => this.allowed(type, name, project) !== null);
    const suggestion = nearestName(server, known);
    const message =
      known.length === 0
        ? `the operator has configured no servers (ZEROFLEET_${type.toUpperCase()}_CREDENTIALS)${type === 'mlflow' ? '; use url for one without credentials' : ''}`
        : `there is no server ${server}; the operator has configured ${known.join(', ')}`;
    return { ...fault('server', 'integration_server_not_found', message), ...(suggestion && { suggestion }) };
  }

  /** Returns null if the operator has removed the server. */
  find({ type, server, url }: Integration, project: string): Tracker | null {
    if (url !== undefined) return { url, authorization: null };
    const found = server === undefined ? null : this.allowed(type, server, project);
    return found && { url: found.url, authorization: authorizationOf(credentialsOf(type, found)) };
  }

  private allowed(type: TrackerType, name: string, project: string): TrackerServer | null {
    return serverOf(this.servers[type], name, project);
  }
}

function fault(name: string, code: FieldErrorCode, message: string): FieldError {
  return { pointer: `/${name}`, code, message };
}

/** W&B takes an API key as the password of the user `api`. */
function credentialsOf(type: TrackerType, server: TrackerServer): Partial<TrackerServer> {
  return type === 'wandb' && server.token !== undefined
    ? { username: 'api', password: server.token }
    : server;
}
