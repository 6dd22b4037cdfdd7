import t from 'tap';
import { redactorOf } from '../logging/redact.js';
import { loadConfig } from './config.js';
import { trackerServers } from './tracker-servers.js';

t.test('servers by name', async (t) => {
  t.equal(loadConfig({}).mlflow_credentials.size, 0);
  const given = {
    main: { url: 'https://mlflow.example.com/base', token: 'a-secret-token' },
    lab: { url: 'http://10.0.0.7:5000', username: 'me', password: 'pass-word', projects: ['lab'] },
    open: { url: 'https://open.example.com' },
  };
  t.same(Object.fromEntries(trackerServers(JSON.stringify(given))), given);
});

t.test('errors name the server and quote no secret', async (t) => {
  const secret = 'a-secret-token';
  const refused: [string, RegExp][] = [
    [`{"main": "${secret}`, /JSON object/],
    [`["${secret}"]`, /JSON object/],
    [`{"Main": {"url": "https://x.example.com", "token": "${secret}"}}`, /name/],
    [`{"main": {"token": "${secret}"}}`, /server main needs a url/],
    [`{"main": {"url": "https://me:${secret}@x.example.com"}}`, /server main needs a url/],
    [`{"main": {"url": "https://x.example.com", "key": "${secret}"}}`, /server main needs a url/],
    [`{"main": {"url": "https://x.example.com", "token": "${secret}\\n"}}`, /server main needs a url/],
    [`{"main": {"url": "https://x.example.com", "username": "${secret}"}}`, /either a token/],
    [
      `{"main": {"url": "https://x.example.com", "username": "a", "password": "b", "token": "${secret}"}}`,
      /either/,
    ],
  ];
  for (const [text, message] of refused) {
    t.throws(() => trackerServers(text), { message }, text);
    try {
      trackerServers(text);
    } catch (error) {
      t.notMatch((error as Error).message, secret);
    }
  }
});

t.test('the secrets are redacted in logs, alone as well', async (t) => {
  const value = JSON.stringify({ main: { url: 'https://x.example.com', token: 'tok-3f81"c2' } });
  const redact = redactorOf({ ZEROFLEET_MLFLOW_CREDENTIALS: value });
  t.equal(redact('sent tok-3f81"c2 to it'), 'sent [redacted] to it');
  t.equal(redact(JSON.stringify({ msg: 'tok-3f81"c2' })), '{"msg":"[redacted]"}');
  t.notMatch(redact(`config ${value}`), 'tok-');
});
