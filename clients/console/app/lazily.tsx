import type { FunctionComponent } from 'preact';
import { lazy } from 'preact/compat';
import { useRef } from 'preact/hooks';
import { ConnectionError } from '../../typescript/index.js';
import { Notice } from '../parts/notice.js';
import { client } from './connection.js';
import { useLoaded } from './loaded.js';

/** A part of the console whose code is fetched when it is first shown. */
export const lazily = <P,>(load: () => Promise<FunctionComponent<P>>): FunctionComponent<P> =>
  lazy(() => load().catch(() => Unfetched));

/**
 * Takes the place of code that could not be fetched. Browsers remember that it could not: the page is loaded again as
 * soon as the server answers, at most once in the interval of `useLoaded`.
 */
function Unfetched() {
  const isFirst = useRef(true);
  const { fault } = useLoaded(async () => {
    if (isFirst.current) {
      isFirst.current = false;
      throw new ConnectionError('code of the view', null);
    }
    await client.sessions.methods();
    location.reload();
  }, []);
  return fault.value && <Notice fault={fault.value} />;
}
