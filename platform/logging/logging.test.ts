import t from 'tap';
import { createLogger } from './logging.js';

function capture() {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line: string) => void lines.push(line) },
  });
  return { log, lines };
}

t.test('one JSON object per line, with times and level names', async (t) => {
  const { log, lines } = capture();
  log.info({ job_id: 'job_1' }, 'hello');
  log.debug('not written');
  t.equal(lines.length, 1);
  const entry = JSON.parse(lines[0] ?? '');
  t.match(entry, { level: 'info', name: 'test', job_id: 'job_1', msg: 'hello' });
  t.match(entry.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

t.test('secrets are redacted', async (t) => {
  const { log, lines } = capture();
  log.info({ authorization: 'Bearer hunter2', api_key: 'hunter2' }, 'top');
  log.info(
    { req: { headers: { authorization: 'hunter2', 'x-api-key': 'hunter2', cookie: 'hunter2' } } },
    'nested',
  );
  log.info({ config: { redis_url: 'redis://:hunter2@x', password: 'hunter2' } }, 'config');
  log.warn({ err: new Error('connect redis://user:hunter2@host:1 failed') }, 'in a message');
  log.info('Authorization: Bearer hunter2');
  log.child({ secret: 'hunter2' }).info('child');
  t.equal(lines.length, 6);
  t.notMatch(lines.join(''), 'hunter2');
  for (const line of lines) t.doesNotThrow(() => JSON.parse(line), 'still JSON');
});

t.test('a terminal gets readable lines without control sequences', async (t) => {
  const lines: string[] = [];
  const destination = { isTTY: true, write: (line: string) => void lines.push(line) };
  const log = createLogger({ level: 'warn', name: 'stack', destination, env: { MY_SECRET: 'hunter22' } });
  log.info('not shown');
  log.warn({ job_id: 'job_1', ranks: [0, 2] }, 'the worker ended');
  const refused = Object.assign(new Error('no answer of \u001b[2Jredis://u:hunter2@h'), {
    code: 'ECONNREFUSED',
  });
  log.child({ part: 'api' }).error({ err: refused }, 'Redis is away');
  log.error(new TypeError('hunter22 is not a function'));
  log.warn({ err: new Error('Command timed out') }, 'not read, will be tried again');
  const time = '\\d\\d:\\d\\d:\\d\\d  ';
  t.match(lines[0], new RegExp(`^${time}warn   stack: the worker ended  job_id=job_1  ranks=\\[0,2\\]\n$`));
  t.match(lines[1], new RegExp(`^${time}error  api: Redis is away: no answer of redis://u:.redacted.@h\\n$`));
  t.equal(lines[1]?.split('\n').length, 2, 'an expected error is one line');
  t.match(
    lines[2],
    new RegExp(`^${time}error  stack: .redacted. is not a function\n +at `),
    'an unexpected one has its stack',
  );
  t.match(
    lines[3],
    /^\S+ {2}warn {3}stack: not read, will be tried again: Command timed out\n$/,
    'a warning is one line',
  );
  t.equal(lines.length, 4);
});
