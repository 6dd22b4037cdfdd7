import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { RequestLog } from './request-log.js';

function logged(level: 'info' | 'warn' = 'info') {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const base = createLogger({ level, name: 'test', destination, env: {} });
  let made = 0;
  const log = new RequestLog(base, (parent) => {
    made++;
    return parent.child({ reqId: 'req_1' });
  });
  return { log, lines, made: () => made };
}

t.test('a line has the fields of the request', async (t) => {
  const { log, lines, made } = logged();
  log.info({ code: 'a' }, 'first');
  log.error({ err: new Error('broken') }, 'second');
  log.child({ more: 1 }).warn('third %s', 'time');
  t.match(lines, [
    { reqId: 'req_1', level: 'info', code: 'a', msg: 'first' },
    { reqId: 'req_1', level: 'error', err: { message: 'broken' }, msg: 'second' },
    { reqId: 'req_1', level: 'warn', more: 1, msg: 'third time' },
  ]);
  t.equal(made(), 1, 'made once');
});

t.test('no child logger is created without a written line', async (t) => {
  const { log, lines, made } = logged('warn');
  log.trace('one');
  log.debug('two');
  log.info('three');
  t.same([lines, made(), log.level], [[], 0, 'warn']);
  log.warn('four');
  log.fatal('five');
  t.match(lines, [{ msg: 'four' }, { msg: 'five' }]);
  t.equal(made(), 1);
});
