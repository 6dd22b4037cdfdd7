-- Messages to webhooks. Needs job.lua.

local function deliveries_key(webhook_id)
  return prefix .. ':webhook:' .. webhook_id .. ':deliveries'
end

local function pending_key(webhook_id)
  return prefix .. ':webhook:' .. webhook_id .. ':pending'
end

-- Name of a message's entry in the queue.
local function entry_of(delivery_id, round)
  return delivery_id .. '-' .. string.format('%d', round)
end

-- Removes a message from the log. An undelivered message can't be sent any more.
local function forget_delivery(webhook_id, id)
  redis.call('DEL', prefix .. ':delivery:' .. id, prefix .. ':delivery:' .. id .. ':attempts')
  redis.call('ZREM', deliveries_key(webhook_id), id)
end
