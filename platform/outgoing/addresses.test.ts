import t from 'tap';
import { AddressPolicy } from './addresses.js';

const strict = new AddressPolicy([]);

const REFUSED = [
  ['loopback', '127.0.0.1', '127.9.9.9', '::1'],
  ['private', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  [
    'link-local and metadata',
    '169.254.169.254',
    'fe80::1',
    'fd00:ec2::254',
    '168.63.129.16',
    '100.100.100.200',
  ],
  ['unique local and site-local', 'fc00::1', 'fd12:3456::1'],
  ['unspecified', '0.0.0.0', '0.1.2.3', '::'],
  ['shared by carriers', '100.64.0.1', '100.127.255.255'],
  ['multicast and broadcast', '224.0.0.1', '239.255.255.250', '255.255.255.255', 'ff02::1'],
  ['reserved', '192.0.0.192', '192.0.2.1', '198.18.0.1', '203.0.113.1', '240.0.0.1', '2001:db8::1'],
  ['IPv4 in IPv6', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe', '::ffff:7f00:1'],
  ['IPv4 behind a translator', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '2002:7f00:1::', '2001:0:7f00:1::'],
  ['no address', '', 'localhost', '999.1.1.1'],
];

t.test('refused: non-public addresses in any notation', async (t) => {
  for (const [kind = '', ...addresses] of REFUSED)
    for (const address of addresses) t.notOk(strict.allows(address, 'https:'), `${kind}: ${address}`);
});

t.test('public addresses, over TLS only', async (t) => {
  for (const address of ['8.8.8.8', '1.1.1.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
    t.ok(strict.allows(address, 'https:'), address);
    t.notOk(strict.allows(address, 'http:'), address);
  }
});

t.test('allowed ranges, and nothing else', async (t) => {
  const policy = new AddressPolicy(['10.1.0.0/16', 'fd00:1::/32']);
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00:1::5'])
    t.ok(policy.allows(address, 'http:'), address);
  for (const address of ['10.2.0.1', '127.0.0.1', 'fd00:2::5', '169.254.169.254'])
    t.notOk(policy.allows(address, 'https:'), address);
  t.ok(policy.allows('8.8.8.8', 'https:'), 'public addresses stay allowed');
});

t.test('URLs that are refused before resolution', async (t) => {
  const refused = [
    'http://hooks.example.com/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://[::1]:8443/',
    'https://[::ffff:169.254.169.254]/',
    'https://user:pass@hooks.example.com/',
    'https://hooks.example.com/#part',
    'ftp://hooks.example.com/',
    'gopher://hooks.example.com/',
    'https://',
    'nothing',
  ];
  for (const url of refused) t.type(strict.objectionTo(url), 'string', url);
  t.equal(strict.objectionTo('https://hooks.example.com:8443/a?b=c'), null);
  t.equal(
    strict.objectionTo('https://localhost/'),
    null,
    'a name is checked by its addresses when a message is sent',
  );
  const local = new AddressPolicy(['127.0.0.0/8']);
  t.equal(local.objectionTo('http://127.0.0.1:9000/'), null);
  t.equal(local.objectionTo('http://receiver/'), null);
  t.type(local.objectionTo('http://8.8.8.8/'), 'string');
});
