import t from 'tap';
import { redisAddress } from './redis-address.js';

t.test('each kind of server has its form, and as many copies of a write as a failover needs', async (t) => {
  t.same(redisAddress('redis://host'), {
    server: { kind: 'single', node: { host: 'host', port: 6379 } },
    login: {},
    db: 0,
    tls: false,
    replicas: 0,
  });
  t.match(redisAddress('redis://[::1]:7/3?replicas=2'), {
    server: { node: { host: '::1', port: 7 } },
    db: 3,
    replicas: 2,
  });
  t.match(redisAddress('unix:///run/a%20b.sock'), {
    server: { kind: 'socket', path: '/run/a b.sock' },
    replicas: 0,
  });
  t.same(redisAddress('rediss+sentinel://user:p%40ss@a,b:7,[::1]/main/4?sentinel_password=x'), {
    server: {
      kind: 'sentinel',
      nodes: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 7 },
        { host: '::1', port: 26379 },
      ],
      primary: 'main',
      password: 'x',
    },
    login: { username: 'user', password: 'p@ss' },
    db: 4,
    tls: true,
    replicas: 1,
  });
  t.same(redisAddress('redis+cluster://:secret@a,b:7/?replicas=0'), {
    server: {
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 7 },
      ],
    },
    login: { password: 'secret' },
    db: 0,
    tls: false,
    replicas: 0,
  });
});

t.test('any other form is refused with a reason, and without the password', async (t) => {
  const forms = {
    '': /a Redis URL is/,
    'host:6379': /a Redis URL is/,
    'http://host': /a Redis URL is/,
    'redis+other://host': /a Redis URL is/,
    'redis://u:hunter2@host/db': /database is a number/,
    'redis://u:hunter2@a,b': /several hosts need/,
    'redis://u:hunter2@a:b': /each host is/,
    'redis://u:hunter%@a': /percent-encoded/,
    'redis+sentinel://u:hunter2@a/%': /percent-encoded/,
    'unix:///%': /percent-encoded/,
    'redis://u:hunter2@a?replicas=-1': /replicas is a whole number from 0 to 5/,
    'redis://u:hunter2@a?replicas=6': /replicas is/,
    'redis://u:hunter2@a?sentinel_password=hunter2': /no parameter sentinel_password/,
    'redis+cluster://u:hunter2@a/1': /one database/,
    'redis+sentinel://u:hunter2@a': /name of the primary/,
    'unix://socket': /absolute path/,
  };
  for (const [url, message] of Object.entries(forms)) {
    const fault = t.throws(() => redisAddress(url), { code: 'invalid_configuration', message }, url);
    t.notMatch(String(fault), /hunter/);
  }
});
