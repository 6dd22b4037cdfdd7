import type { FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';
import { Periodic } from '../../platform/process/periodic.js';
import type { Principal } from '../../state/index.js';
import { allows, authenticate, type Credentials, credentialOf } from './authenticate.js';

const INTERVAL_MS = 1_000;

/** A long-lived request and its abort function. */
interface Watched {
  request: FastifyRequest;
  ended: AbortController;
}

/**
 * Ends long-lived requests, such as streams, when their key or share becomes invalid, their session ends, or its user
 * has signed in with other rights. One look-up per key, share or session serves all its requests.
 */
export class KeyWatch {
  private readonly watched = new Map<string, Set<Watched>>();
  private readonly looking: Periodic;

  constructor(
    private readonly credentials: Credentials,
    onError: (error: unknown) => void,
  ) {
    this.looking = new Periodic(() => this.look(), INTERVAL_MS, onError);
  }

  /** Number of requests that are watched. */
  get size(): number {
    return [...this.watched.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Returns a signal that is aborted when the request's key or session becomes invalid. Watches until `closed` is
   * aborted.
   */
  watch(request: FastifyRequest, closed: AbortSignal): AbortSignal {
    const ended = new AbortController();
    if (closed.aborted) return ended.signal;
    const credential = credentialOf(request);
    const ofKey = this.watched.get(credential) ?? new Set();
    this.watched.set(credential, ofKey);
    const one = { request, ended };
    ofKey.add(one);
    const leave = () => {
      ofKey.delete(one);
      if (ofKey.size === 0 && this.watched.get(credential) === ofKey) this.watched.delete(credential);
    };
    closed.addEventListener('abort', leave, { once: true });
    return ended.signal;
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.looking.close();
  }

  private async look(): Promise<void> {
    for (const ofKey of [...this.watched.values()]) {
      const [first] = ofKey;
      if (first === undefined) continue;
      const principal = await this.find(first.request);
      for (const { request, ended } of ofKey)
        if (principal === null || !mayGoOn(request, principal)) ended.abort();
    }
  }

  private async find(request: FastifyRequest): Promise<Principal | null> {
    try {
      return (await authenticate(this.credentials, request)).principal;
    } catch (error) {
      // A failed look-up says nothing about the key.
      if (error instanceof ZerofleetError && error.code === 'unauthenticated') return null;
      throw error;
    }
  }
}

/** True if the principal still has the project in which the request began, and the scopes of its operation. */
function mayGoOn({ principal: before, operation }: FastifyRequest, principal: Principal): boolean {
  const scopes = operation?.scopes ?? [];
  return before?.project === principal.project && scopes.every((scope) => allows(principal, scope));
}
