/** Requests about the autoscaler's pods in its namespace: list, watch, create, delete. */
import { Check, type Static, Type } from '../../platform/schema.js';
import type { Connection } from './connection.js';
import { errorOf, KubernetesError } from './errors.js';
import { MANAGED } from './pod-manifest.js';

const Page = Type.Object({
  metadata: Type.Object({ resourceVersion: Type.String(), continue: Type.Optional(Type.String()) }),
  items: Type.Array(Type.Unsafe<unknown>()),
});
const Event = Type.Object({
  type: Type.String(),
  object: Type.Object({
    metadata: Type.Optional(Type.Object({ resourceVersion: Type.Optional(Type.String()) })),
  }),
});
const pages = new Check(Page);
const events = new Check(Event);

export interface PodEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: unknown;
  resource_version: string;
}

/** Pods of a page. The server needs little memory for it, and this process little time. */
const PAGE = 250;
/** Time after which the server ends a watch, which then continues. */
const WATCH_SECONDS = 280;
/** The server sends bookmarks about once a minute. */
const WATCH_IDLE_MS = 200_000;

export class PodsApi {
  constructor(private readonly connection: Connection) {}

  /** Returns all pods, and the version from which a watch continues. */
  async list(): Promise<{ items: unknown[]; resource_version: string }> {
    const items: unknown[] = [];
    let next = '';
    for (;;) {
      const query = { limit: String(PAGE), ...(next && { continue: next }) };
      const page = await this.connection.json('list', 'GET', this.selected(query));
      if (!pages.fits(page)) throw new KubernetesError(0, `a list of pods: ${pages.problems()[0]}`);
      items.push(...page.items);
      next = page.metadata.continue ?? '';
      if (next === '') return { items, resource_version: page.metadata.resourceVersion };
    }
  }

  /** Yields changes since a version, until the server ends the watch. @throws KubernetesError 410: begin anew */
  async *watch(version: string, signal: AbortSignal): AsyncGenerator<PodEvent, void> {
    const path = this.selected({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: version,
      timeoutSeconds: String(WATCH_SECONDS),
    });
    for await (const line of this.connection.lines('watch', path, signal, WATCH_IDLE_MS)) {
      const event: unknown = JSON.parse(line);
      if (!events.fits(event)) throw new KubernetesError(0, `a watch of pods: ${events.problems()[0]}`);
      if (event.type === 'ERROR') throw errorOf(500, JSON.stringify(event.object));
      const { type, object } = event as Static<typeof Event> & { type: PodEvent['type'] };
      yield { type, object, resource_version: object.metadata?.resourceVersion ?? '' };
    }
  }

  /** Creates a pod and returns its description. @throws KubernetesError 409: there is one of this name */
  create(pod: object): Promise<unknown> {
    return this.connection.json('create', 'POST', this.path, pod);
  }

  /**
   * Deletes a pod, with its grace period.
   * @param version only while it has this version
   * @returns false if it is another one by now, has changed, or is gone
   */
  async remove(name: string, uid: string, version?: string): Promise<boolean> {
    const preconditions = { uid, ...(version !== undefined && { resourceVersion: version }) };
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
    try {
      await this.connection.json('delete', 'DELETE', `${this.path}/${name}`, options);
      return true;
    } catch (error) {
      if (error instanceof KubernetesError && (error.status === 404 || error.status === 409)) return false;
      throw error;
    }
  }

  close(): void {
    this.connection.close();
  }

  private get path(): string {
    return `/api/v1/namespaces/${this.connection.namespace}/pods`;
  }

  private selected(query: Record<string, string>): string {
    return `${this.path}?${new URLSearchParams({ labelSelector: `${MANAGED.key}=${MANAGED.value}`, ...query })}`;
  }
}
