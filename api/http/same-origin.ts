import type { FastifyRequest } from 'fastify';
import { ZerofleetError } from '../../contracts/index.js';

/**
 * A page of another site cannot send this header: it would need the permission of this server (CORS), which gives none.
 */
const CONSOLE_HEADER = 'x-zerofleet-console';

/**
 * Refuses a request that a page of another site caused, by what the browser itself says of it. Without
 * `Sec-Fetch-Site`, which browsers send over HTTPS and on loopback, the `Origin` must have this server's host.
 *
 * @throws ZerofleetError `csrf_rejected`
 */
export function requireSameOrigin({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const { origin, host, 'sec-fetch-site': site } = headers;
  if (site !== undefined) {
    if (site === 'same-origin' || site === 'none') return;
    throw new ZerofleetError('csrf_rejected', 'a page of another origin has sent the request');
  }
  if (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)) return;
  throw new ZerofleetError('csrf_rejected', 'the Origin of the request is not this server');
}

/**
 * Refuses a request of a browser session that the console may not have sent.
 * @throws ZerofleetError `csrf_rejected`
 */
export function requireConsole(request: Pick<FastifyRequest, 'headers' | 'method'>): void {
  requireSameOrigin(request);
  const { method, headers } = request;
  if (method === 'GET' || method === 'HEAD' || headers[CONSOLE_HEADER] === '1') return;
  throw new ZerofleetError(
    'csrf_rejected',
    `with a session, ${method} needs the header ${CONSOLE_HEADER}: 1`,
  );
}
