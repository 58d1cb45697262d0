-- SPDX-License-Identifier: BSD-3-Clause
--
-- Wireshark's view of the Peregrine protocol, version 2. PROTOCOL.md is the rule, packet.h the layout; README.md says
-- how to load this file. Runs with Lua 5.2 (Wireshark 4.0) and 5.4 (4.4): hence no operators on bits, and numbers are
-- written with %d, since 5.4 would write a float as "7.0".

local peregrine = Proto("peregrine", "Peregrine")
local peregrine_ip = Proto("peregrine_ip", "Peregrine directly on IP") -- the prefix, which UDP does not need

local VERSION, HEADER_BYTES, EXTENSION_BYTES, TOKEN_BYTES, SLOTS, PREFIX_BYTES = 2, 48, 8, 64, 64, 8
local MESSAGE_BYTES_MAX, PACKETS_MAX, BITMAP_BYTES_MAX = 2 ^ 30, 2 ^ 20, 64
local CALL, RESULT, ACK, NACK, PROBE, ALIVE, CHALLENGE, REJECT = 1, 2, 3, 4, 5, 6, 7, 8
local ASK, COOKIE, DELEGATED, KEYED, OF_RESULT, FLAGS_END = 1, 2, 16, 32, 64, 128
local OTHER_VERSION, FAILED = 2, 6 -- reasons of a reject
local PROCEDURE_OWN = -64 -- a procedure's own codes are this or below
local SMALL_BYTES = 1136 -- of data, where larger packets do not arrive
local KEPT_BYTES_MAX = 256 * 2 ^ 20 -- of messages put together, in memory at a time

local TYPES = {
	[CALL] = "call", [RESULT] = "result", [ACK] = "ack", [NACK] = "nack", [PROBE] = "probe", [ALIVE] = "alive",
	[CHALLENGE] = "challenge", [REJECT] = "reject",
}
local REASONS = {
	[1] = "no such procedure", [OTHER_VERSION] = "another version", [3] = "busy, try again", [4] = "too large", [5] = "not authorised",
	[FAILED] = "failed by the procedure", [7] = "lost",
}
local SET = { "set", "not set" }
local BYTES = { " byte", " bytes" }

peregrine.prefs.udp_port = Pref.uint("UDP port", 0,
	"Whatever comes from or goes to this port is Peregrine's, right or malformed. 0: UDP packets are known by their header.")
peregrine.prefs.ip_protocol = Pref.uint("IP protocol", 253,
	"Protocol number of packets directly on IP, behind a prefix. 0: none.")
peregrine.prefs.reassemble = Pref.bool("Put messages together", true,
	"Shows a message of several packets as a whole, with the packet that completes it.")
peregrine.prefs.reassemble_mib = Pref.uint("Longest message to put together (MiB)", 4,
	"Longer messages are shown packet by packet only, to spare memory.")

local f = {
	destination = ProtoField.uint32("peregrine.destination", "Destination endpoint", base.HEX, nil, nil,
		"Number of the endpoint that shall have the packet"),
	source = ProtoField.uint32("peregrine.source", "Source endpoint", base.HEX, nil, nil, "Number of the sender's endpoint"),
	type = ProtoField.uint8("peregrine.type", "Type", base.DEC, TYPES),
	flags = ProtoField.uint8("peregrine.flags", "Flags", base.HEX),
	ask = ProtoField.bool("peregrine.flags.ask", "Ask: answer at once", 8, SET, 0x01),
	has_cookie = ProtoField.bool("peregrine.flags.cookie", "Cookie follows the header", 8, SET, 0x02),
	big_endian = ProtoField.bool("peregrine.flags.big_endian", "Sender is big-endian", 8, SET, 0x04),
	words = ProtoField.bool("peregrine.flags.words", "Data are big-endian words of 4 bytes", 8, SET, 0x08),
	delegated = ProtoField.bool("peregrine.flags.delegated", "Delegated", 8, SET, 0x10),
	keyed = ProtoField.bool("peregrine.flags.keyed", "Keyed: check follows the header", 8, SET, 0x20),
	of_result = ProtoField.bool("peregrine.flags.of_result", "Of a result: ack or nack of a client", 8, SET, 0x40),
	unknown = ProtoField.bool("peregrine.flags.unknown", "Unknown", 8, SET, 0x80),
	version = ProtoField.uint8("peregrine.version", "Version"),
	retransmissions = ProtoField.uint8("peregrine.retransmissions", "Retransmissions", base.DEC, nil, nil,
		"Time-outs of the call in a row, up to now; an answer repeats the number of what it answers"),
	slot = ProtoField.uint16("peregrine.slot", "Slot"),
	taken = ProtoField.uint16("peregrine.taken", "Data that the server takes in a packet", base.UNIT_STRING, BYTES),
	credits = ProtoField.uint16("peregrine.credits", "Credits", base.UNIT_STRING, { " packet", " packets" }, nil,
		"Packets that the receiver of this one may have under way to its sender; 0 says nothing"),
	client = ProtoField.uint64("peregrine.client", "Client", base.HEX, nil, nil, "Identifier of the binding"),
	sequence = ProtoField.uint64("peregrine.sequence", "Sequence", base.DEC, nil, nil, "Number of the call in its slot"),
	incarnation = ProtoField.uint32("peregrine.incarnation", "Incarnation", base.HEX, nil, nil,
		"Of the server, as the sender knows it; 0 in a call: not known yet"),
	procedure = ProtoField.uint32("peregrine.procedure", "Procedure"),
	reason = ProtoField.uint32("peregrine.reason", "Reason", base.DEC, REASONS),
	claimed = ProtoField.uint32("peregrine.claimed", "Incarnation that the call claimed", base.HEX),
	message_bytes = ProtoField.uint32("peregrine.message_bytes", "Message length", base.UNIT_STRING, BYTES),
	packet_number = ProtoField.uint32("peregrine.packet_number", "Packet number", base.DEC, nil, nil,
		"Within the message, from 0"),
	data_bytes = ProtoField.uint32("peregrine.data_bytes", "Data length", base.UNIT_STRING, BYTES, nil,
		"That follow the header and its extensions"),
	packet_bytes = ProtoField.uint32("peregrine.packet_bytes", "Packet length", base.UNIT_STRING, BYTES, nil,
		"Data of every packet of this message but the last"),
	memory = ProtoField.uint32("peregrine.memory", "Memory time", base.UNIT_STRING, { " ms" }, nil,
		"How long the server remembers a client that says nothing"),
	cookie = ProtoField.uint64("peregrine.cookie", "Cookie", base.HEX),
	check = ProtoField.bytes("peregrine.check", "Check (not verified)", base.NONE),
	data = ProtoField.bytes("peregrine.data", "Data", base.NONE),
	code = ProtoField.int32("peregrine.code", "Code of the procedure"),
	rest = ProtoField.bytes("peregrine.rest", "Bytes behind the packet", base.NONE),
	-- nack
	bitmap = ProtoField.bytes("peregrine.nack.bitmap", "Bitmap", base.NONE),
	missing = ProtoField.uint32("peregrine.nack.missing", "Missing packet"),
	arrived = ProtoField.uint32("peregrine.nack.arrived", "Arrived packet"),
	-- token of a delegated call
	token = ProtoField.bytes("peregrine.token", "Delegation token", base.NONE),
	token_address = ProtoField.bytes("peregrine.token.address", "Client address", base.COLON),
	token_ip = ProtoField.ipv4("peregrine.token.ip", "IPv4 address"),
	token_ipv6 = ProtoField.ipv6("peregrine.token.ipv6", "IPv6 address"),
	token_port = ProtoField.uint16("peregrine.token.port", "Port"),
	token_endpoint = ProtoField.uint32("peregrine.token.endpoint", "Endpoint", base.HEX),
	token_mac = ProtoField.ether("peregrine.token.mac", "Hardware address"),
	token_address_bytes = ProtoField.uint32("peregrine.token.address_bytes", "Length of client address", base.UNIT_STRING,
		BYTES),
	token_packet_bytes = ProtoField.uint32("peregrine.token.packet_bytes", "Packet length of the result, at most",
		base.UNIT_STRING, BYTES),
	token_client = ProtoField.uint64("peregrine.token.client", "Client", base.HEX),
	token_sequence = ProtoField.uint64("peregrine.token.sequence", "Sequence"),
	token_slot = ProtoField.uint32("peregrine.token.slot", "Slot"),
	token_incarnation = ProtoField.uint32("peregrine.token.incarnation", "Incarnation that the client claims", base.HEX),
	-- found out, not carried
	packets = ProtoField.uint32("peregrine.packets", "Packets of the message"),
	call_frame = ProtoField.framenum("peregrine.call_frame", "Call in frame", base.NONE, frametype.REQUEST),
	result_frame = ProtoField.framenum("peregrine.result_frame", "Result in frame", base.NONE, frametype.RESPONSE),
	time = ProtoField.relative_time("peregrine.time", "Time since the call"),
	challenge_frame = ProtoField.framenum("peregrine.challenge_frame", "Obeys the challenge in frame", base.NONE,
		frametype.REQUEST),
	original_frame = ProtoField.framenum("peregrine.original_frame", "First sent in frame", base.NONE, frametype.RETRANS_PREV),
	delegated_frame = ProtoField.framenum("peregrine.delegated_frame", "Passes on the call in frame", base.NONE,
		frametype.REQUEST),
	whole_frame = ProtoField.framenum("peregrine.whole.frame", "Message whole in frame"),
	whole = ProtoField.bytes("peregrine.whole", "Whole message", base.NONE),
	whole_bytes = ProtoField.uint32("peregrine.whole.bytes", "Length", base.UNIT_STRING, BYTES),
	part = ProtoField.framenum("peregrine.whole.part", "Packet in frame"),
}
peregrine.fields = f

local e = {
	version = ProtoExpert.new("peregrine.bad_version", "Another version", expert.group.PROTOCOL, expert.severity.ERROR),
	type = ProtoExpert.new("peregrine.bad_type", "Unknown type", expert.group.MALFORMED, expert.severity.ERROR),
	flags = ProtoExpert.new("peregrine.bad_flags", "Unknown flags", expert.group.MALFORMED, expert.severity.ERROR),
	slot = ProtoExpert.new("peregrine.bad_slot", "No such slot", expert.group.MALFORMED, expert.severity.ERROR),
	sequence = ProtoExpert.new("peregrine.bad_sequence", "No such sequence number", expert.group.MALFORMED,
		expert.severity.ERROR),
	length = ProtoExpert.new("peregrine.bad_length", "Lengths do not fit", expert.group.MALFORMED, expert.severity.ERROR),
	odd = ProtoExpert.new("peregrine.odd", "Unusual", expert.group.PROTOCOL, expert.severity.WARN),
	cut = ProtoExpert.new("peregrine.cut", "Cut by the capture", expert.group.UNDECODED, expert.severity.NOTE),
	repeated = ProtoExpert.new("peregrine.retransmission", "Retransmission", expert.group.SEQUENCE, expert.severity.NOTE),
	past = ProtoExpert.new("peregrine.past", "Of a past call", expert.group.SEQUENCE, expert.severity.NOTE),
	reject = ProtoExpert.new("peregrine.rejected", "Call rejected", expert.group.RESPONSE_CODE, expert.severity.NOTE),
}
peregrine.experts = { e.version, e.type, e.flags, e.slot, e.sequence, e.length, e.odd, e.cut, e.repeated, e.past,
	e.reject }

local function text(...) return string.format(...) end

local function has(flags, bit) return math.floor(flags / bit) % 2 == 1 end

-- {4, 6, 7, 8} is "4, 6-8"; a long list ends in "...".
local function ranges(numbers)
	local out, i = {}, 1
	while i <= #numbers do
		local j = i
		while j < #numbers and numbers[j + 1] == numbers[j] + 1 do
			j = j + 1
		end
		if #out == 8 then
			out[9] = "..."
			break
		end
		out[#out + 1] = i == j and text("%d", numbers[i]) or text("%d-%d", numbers[i], numbers[j])
		i = j + 1
	end
	return table.concat(out, ", ")
end

-- The header at an offset as a table; nil where less than a header was captured.
local function read(tvb, at)
	if tvb:len() - at < HEADER_BYTES then
		return nil
	end
	local h = {
		type = tvb(at, 1):uint(), flags = tvb(at + 1, 1):uint(), version = tvb(at + 2, 1):uint(),
		retransmissions = tvb(at + 3, 1):uint(), slot = tvb(at + 4, 2):le_uint(),
		sequence = tvb(at + 16, 8):le_uint64(), incarnation = tvb(at + 24, 4):le_uint(),
		procedure = tvb(at + 28, 4):le_uint(), message_bytes = tvb(at + 32, 4):le_uint(),
		packet_number = tvb(at + 36, 4):le_uint(), data_bytes = tvb(at + 40, 4):le_uint(),
		packet_bytes = tvb(at + 44, 4):le_uint(),
	}
	h.client = tvb:raw(at + 8, 8)
	h.data_at = at + HEADER_BYTES + (has(h.flags, COOKIE) and EXTENSION_BYTES or 0)
		+ (has(h.flags, KEYED) and EXTENSION_BYTES or 0)
	h.ends_at = h.data_at + h.data_bytes
	h.carries = h.type == CALL or h.type == RESULT
	h.packets = 1
	if h.message_bytes > h.packet_bytes and h.packet_bytes > 0 then
		h.packets = math.floor((h.message_bytes - 1) / h.packet_bytes) + 1
	end
	return h
end

-- Why a receiver drops a packet: a list of {expert, what}. Empty: it is a right one.
local function faults(h, reported)
	local found = {}
	local function fault(...)
		local which = (...)
		found[#found + 1] = { which, text(select(2, ...)) }
	end

	if h.version ~= VERSION then
		fault(e.version, "Version %d, not %d", h.version, VERSION)
		return found -- nothing else is known of it
	end
	if not TYPES[h.type] then
		fault(e.type, "Unknown type %d", h.type)
	end
	if h.flags >= FLAGS_END then
		fault(e.flags, "Unknown flags 0x%02x", h.flags - h.flags % FLAGS_END)
	end
	if h.slot >= SLOTS then
		fault(e.slot, "Slot %d: the last one is %d", h.slot, SLOTS - 1)
	end
	if h.sequence == UInt64(0) then
		fault(e.sequence, "Sequence numbers begin at 1")
	end
	if h.data_at > reported then
		fault(e.length, "Extensions end %d bytes behind the packet", h.data_at - reported)
	elseif h.ends_at > reported then
		fault(e.length, "%d bytes of data do not fit: %d are there", h.data_bytes, reported - h.data_at)
	elseif h.ends_at < reported then
		fault(e.length, "%d bytes behind the packet", reported - h.ends_at)
	end
	if not h.carries then
		if h.type == NACK then
			if h.data_bytes > BITMAP_BYTES_MAX then
				fault(e.length, "Bitmap of %d bytes: the longest has %d", h.data_bytes, BITMAP_BYTES_MAX)
			end
		elseif h.type == REJECT and h.procedure == FAILED then
			if h.data_bytes ~= 4 then
				fault(e.length, "%d bytes of data, but a code has 4", h.data_bytes)
			end
		elseif h.data_bytes > 0 and TYPES[h.type] then
			fault(e.length, "%d bytes of data in a packet of type %s%s", h.data_bytes, TYPES[h.type],
				h.type == REJECT and text(", reason %d", h.procedure) or "")
		end
		return found
	end
	local whole, each, right = h.message_bytes, h.packet_bytes, 0
	if whole > MESSAGE_BYTES_MAX then
		fault(e.length, "Message of %d bytes: the longest has %d", whole, MESSAGE_BYTES_MAX)
	elseif whole > each and each == 0 then
		fault(e.length, "Message of %d bytes in packets of none", whole)
	elseif h.packets > PACKETS_MAX then
		fault(e.length, "Message of %d packets: the longest has %d", h.packets, PACKETS_MAX)
	elseif h.packet_number >= h.packets then
		fault(e.length, "Packet %d of a message of %d", h.packet_number, h.packets)
	else
		right = h.packet_number < h.packets - 1 and each or whole - (h.packets - 1) * each
		if h.data_bytes ~= right then
			fault(e.length, "%d bytes of data, but packet %d of %d bytes by %d has %d", h.data_bytes, h.packet_number,
				whole, each, right)
		end
	end
	return found
end

-- Right, though not what a sender of this protocol does.
local function oddities(h, tvb)
	local found = {}
	local function odd(...) found[#found + 1] = text(...) end

	if has(h.flags, OF_RESULT) and h.type ~= ACK and h.type ~= NACK then
		odd("A packet of type %s is not of a result", TYPES[h.type])
	end
	if h.type == CALL and has(h.flags, DELEGATED) and h.message_bytes < TOKEN_BYTES then
		odd("A delegated call of %d bytes: its token has %d", h.message_bytes, TOKEN_BYTES)
	end
	if h.type == REJECT and not REASONS[h.procedure] then
		odd("Unknown reason %d", h.procedure)
	elseif h.type == REJECT and h.data_bytes == 4 and h.ends_at <= tvb:len()
		and tvb(h.data_at, 4):le_int() > PROCEDURE_OWN then
		odd("Code %d: a procedure's own are %d or below", tvb(h.data_at, 4):le_int(), PROCEDURE_OWN)
	end
	return found
end

-- What is known of calls -------------------------------------------------------------------------------------------

local slots   -- client's end .. client .. slot -> the newest call seen there
local frames  -- frame and place in it -> what the first pass found out
local ends    -- port or endpoint number -> the addresses it was seen with
local kept_bytes

local function forget()
	slots, frames, ends, kept_bytes = {}, {}, {}, 0
end
peregrine.init = forget -- each capture file begins anew
forget()

-- A name for an end: its address, and its port or endpoint number. The address as text will not do, since Wireshark may
-- come to know a host's name between two packets.
local function end_of(wire, number, address)
	local key = text("%s %d", wire, number)
	local known = ends[key] or {}
	ends[key] = known
	for i, each in ipairs(known) do
		if each == address then
			return text("%s %d", key, i)
		end
	end
	known[#known + 1] = address
	return text("%s %d", key, #known)
end

-- The client's end of a packet.
local function client_end(h, pinfo, prefix)
	local reports = h.type == ACK or h.type == NACK
	if h.type == CALL or h.type == PROBE or reports and has(h.flags, OF_RESULT) then
		return end_of(prefix and "ip" or "udp", prefix and prefix.source or pinfo.src_port, pinfo.src)
	end
	return end_of(prefix and "ip" or "udp", prefix and prefix.destination or pinfo.dst_port, pinfo.dst)
end

local function call_of(at, client, slot, sequence, make)
	local key = text("%s %d ", at, slot) .. client
	local call = slots[key]
	if make and (not call or sequence > call.sequence) then
		call = { sequence = sequence, seen = {}, parts = {}, packets = {} }
		slots[key] = call -- of a past call, late packets are told apart but no more followed: memory stays bounded
	end
	return call
end

-- Stores the data of a packet; where that completes the message, returns it and the frames it came in.
local function collect(call, h, tvb, frame)
	if h.packets == 1 or not peregrine.prefs.reassemble or h.message_bytes > peregrine.prefs.reassemble_mib * 2 ^ 20 then
		return nil
	end
	local m = call.parts[h.type]
	if not m or not m.whole_frame and h.packet_bytes == SMALL_BYTES and m.packet_bytes > SMALL_BYTES then
		m = { data = {}, frames = {}, have = 0, message_bytes = h.message_bytes, packet_bytes = h.packet_bytes }
		call.parts[h.type] = m
	end
	if m.whole_frame or m.data[h.packet_number + 1] or m.message_bytes ~= h.message_bytes
		or m.packet_bytes ~= h.packet_bytes or h.ends_at > tvb:len() or kept_bytes + h.data_bytes > KEPT_BYTES_MAX then
		return m -- repeated, of another shape, cut by the capture, or no room
	end
	m.data[h.packet_number + 1] = tvb:raw(h.data_at, h.data_bytes)
	m.frames[h.packet_number + 1] = frame
	m.have = m.have + 1
	kept_bytes = kept_bytes + h.data_bytes
	if m.have == h.packets then
		m.bytes = table.concat(m.data)
		m.data = {}
		m.whole_frame, m.whole_at = frame, h.data_at
	end
	return m
end

-- Finds out what a packet means for its call; once for each packet, in the order of the capture.
local function follow(h, tvb, pinfo, prefix)
	local call = call_of(client_end(h, pinfo, prefix), h.client, h.slot, h.sequence, true)
	local found = { call = call }

	if h.sequence < call.sequence then
		return { past = call.sequence }
	end
	local earlier = call.frame
	if h.type == CALL and not call.frame then
		call.frame, call.time = pinfo.number, pinfo.rel_ts
	end
	if h.carries or h.type == REJECT then
		local key = text("%d %d", h.type, h.packet_number)
		local first = call.seen[key]
		if not first then
			call.seen[key] = pinfo.number
			-- Of an answer, the count is that of what it answers. Of a blast, it may count the time-outs of all packets.
			found.repeated = h.type == CALL and h.retransmissions > 0 and (h.packets == 1 or not earlier)
		elseif h.type == CALL and has(h.flags, COOKIE) and call.challenge then
			found.challenge = call.challenge -- the first copy was refused, not lost
		else
			found.repeated = true
			found.original = first
		end
	end
	if h.type == CALL and not has(h.flags, COOKIE) or h.type == RESULT or h.type == ALIVE then
		call.challenge = nil
	elseif h.type == CHALLENGE then
		call.challenge = pinfo.number
	end
	if h.type == RESULT or h.type == REJECT or h.type == ALIVE or h.type == CHALLENGE then
		found.call_frame = call.frame
		found.time = call.time and pinfo.rel_ts - call.time
		if (h.type == RESULT or h.type == REJECT) and not call.result_frame then
			call.result_frame = pinfo.number
		end
	elseif h.type == ACK then
		found.packets = call.packets[has(h.flags, OF_RESULT) and RESULT or CALL]
	end
	if h.carries then
		call.packets[h.type] = h.packets
		found.message = collect(call, h, tvb, pinfo.number)
	end
	return found
end

-- The tree ---------------------------------------------------------------------------------------------------------

local function generated(tree, field, ...)
	local item = tree:add(field, ...)
	item:set_generated()
	return item
end

local function relative(seconds)
	local nanoseconds = math.floor(seconds * 1e9 + 0.5)
	return NSTime.new(math.floor(nanoseconds / 1e9), nanoseconds % 1e9)
end

local function show_flags(tree, range)
	local item = tree:add(f.flags, range)
	local flags, names = range:uint(), {}
	for _, flag in ipairs({ { f.ask, 1, "ask" }, { f.has_cookie, 2, "cookie" }, { f.big_endian, 4, "big-endian" },
		{ f.words, 8, "words" }, { f.delegated, 16, "delegated" }, { f.keyed, 32, "keyed" },
		{ f.of_result, 64, "of a result" } }) do
		item:add(flag[1], range)
		if has(flags, flag[2]) then
			names[#names + 1] = flag[3]
		end
	end
	if flags >= FLAGS_END then
		item:add(f.unknown, range)
	end
	item:append_text(#names > 0 and " (" .. table.concat(names, ", ") .. ")" or "")
end

-- Shows the bitmap of a nack; returns the packets that are missing for certain.
local function show_bitmap(tree, tvb, h)
	local missing, arrived, open = { h.packet_number }, {}, {}
	local captured = math.max(0, math.min(h.data_bytes, tvb:len() - h.data_at))
	local item = captured > 0 and tree:add(f.bitmap, tvb(h.data_at, captured)) or tree
	generated(item, f.missing, h.packet_number)
	for i = 0, captured * 8 - 1 do
		local number = h.packet_number + 1 + i
		local range = tvb(h.data_at + math.floor(i / 8), 1)
		if has(range:uint(), 2 ^ (i % 8)) then
			for _, each in ipairs(open) do -- a later one has arrived, so these ones are late
				missing[#missing + 1] = each[1]
				item:add(f.missing, each[2], each[1])
			end
			open = {}
			arrived[#arrived + 1] = number
			item:add(f.arrived, range, number)
		else
			open[#open + 1] = { number, range }
		end
	end
	if captured > 0 then
		item:append_text(text(" (missing: %s%s)", ranges(missing), #arrived > 0 and "; arrived: " .. ranges(arrived) or ""))
	end
	return missing
end

-- Whether an address in a token is one of IPv6.
local function is_v6(range, prefix) return not prefix and range(6, 1):uint() == 6 end

-- An address in a token: {IPv4, port}, or {word of the network, port, 6, 0, IPv6, scope}, on the wire udp, {IPv4, endpoint
-- number} on ip, {IPv4, endpoint number, hardware address} on xdp; then zeros. Anything else stays bytes. Returns it as text.
local function show_address(tree, range, prefix)
	local used = prefix and 14 or 6
	if is_v6(range, prefix) then
		tree:add(f.token_ipv6, range(8, 16))
		tree:add(f.token_port, range(4, 2))
		return text("[%s]:%d", tostring(range(8, 16):ipv6()), range(4, 2):uint())
	end
	if range(used):bytes():tohex():find("[^0]") or range(0, 4):uint() == 0 then
		return nil
	end
	tree:add(f.token_ip, range(0, 4))
	local ip = tostring(range(0, 4):ipv4())
	if not prefix then
		tree:add(f.token_port, range(4, 2))
		return text("%s:%d", ip, range(4, 2):uint())
	end
	tree:add(f.token_endpoint, range(4, 4))
	local said = text("%s endpoint 0x%08x", ip, range(4, 4):uint())
	if range(8, 6):bytes():tohex():find("[^0]") then
		tree:add(f.token_mac, range(8, 6))
		said = said .. " at " .. tostring(range(8, 6):ether())
	end
	return said
end

local function show_token(tree, range, prefix)
	local item = tree:add(f.token, range)
	local bytes, slot, sequence = range(32, 4):le_uint(), range(56, 4):le_uint(), range(48, 8):le_uint64()
	local address = item:add(f.token_address, range(0, 32))
	local readable = show_address(address, range(0, 32), prefix)
	if readable then
		address:append_text(" (" .. readable .. ")")
	end
	item:add_le(f.token_address_bytes, range(32, 4))
	item:add_le(f.token_packet_bytes, range(36, 4))
	item:add_le(f.token_client, range(40, 8))
	item:add_le(f.token_sequence, range(48, 8))
	item:add_le(f.token_slot, range(56, 4))
	item:add_le(f.token_incarnation, range(60, 4))
	item:set_text(text("Delegation token: call %s slot %d of client 0x%s%s", tostring(sequence), slot,
		range(40, 8):le_uint64():tohex(), readable and " of " .. readable or ""))
	if bytes > 32 then
		item:add_proto_expert_info(e.length, text("Client address of %d bytes: it has room for 32", bytes))
	end
	if slot >= SLOTS then
		item:add_proto_expert_info(e.slot, text("Slot %d: the last one is %d", slot, SLOTS - 1))
	end
	if sequence == UInt64(0) then
		item:add_proto_expert_info(e.sequence, "Sequence numbers begin at 1")
	end
end

-- Names the call that a token stands for, if it was seen. The token is of the wire that it came over.
local function show_origin(tree, range, found, prefix)
	if not found.origin then
		local number = prefix and range(4, 4):uint() or range(4, 2):uint()
		local host = is_v6(range, prefix) and range(8, 16):ipv6() or range(0, 4):ipv4()
		local at = end_of(prefix and "ip" or "udp", number, host)
		local call = call_of(at, range:raw(40, 8), range(56, 4):le_uint(), nil, false)
		found.origin = call and call.sequence == range(48, 8):le_uint64() and call.frame
	end
	if found.origin then
		generated(tree, f.delegated_frame, found.origin)
	end
end

local function show_data(tree, tvb, h, found, prefix)
	local captured = math.min(h.data_bytes, tvb:len() - h.data_at)
	if captured <= 0 then
		return
	end
	local range = tvb(h.data_at, captured)
	if h.type == CALL and has(h.flags, DELEGATED) and h.packet_number == 0 and captured >= TOKEN_BYTES then
		show_token(tree, range(0, TOKEN_BYTES), prefix)
		show_origin(tree, range(0, TOKEN_BYTES), found, prefix)
		if captured > TOKEN_BYTES then
			tree:add(f.data, range(TOKEN_BYTES))
		end
	elseif h.type == REJECT and captured == 4 then
		tree:add_le(f.code, range)
	else
		tree:add(f.data, range)
	end
end

local function show_whole(tree, h, found, pinfo, prefix)
	local m = found.message
	if not m or not m.whole_frame then
		return
	end
	if m.whole_frame ~= pinfo.number or m.whole_at ~= h.data_at then
		generated(tree, f.whole_frame, m.whole_frame)
		return
	end
	local tvb = ByteArray.new(m.bytes, true):tvb(h.type == CALL and "Whole call" or "Whole result")
	local item = generated(tree, f.whole, tvb())
	item:set_text(text("Whole message: %d bytes of %d packets", m.message_bytes, #m.frames))
	generated(item, f.whole_bytes, m.message_bytes)
	for i, frame in ipairs(m.frames) do
		if frame ~= m.frames[i - 1] then -- a frame may hold several
			generated(item, f.part, frame)
		end
	end
	if h.type == CALL and has(h.flags, DELEGATED) and m.packet_bytes < TOKEN_BYTES and m.message_bytes >= TOKEN_BYTES then
		show_token(item, tvb(0, TOKEN_BYTES), prefix)
		show_origin(tree, tvb(0, TOKEN_BYTES), found, prefix)
	end
end

local function show_found(tree, h, found, pinfo, prefix)
	local call = found.call
	if found.past then
		tree:add_proto_expert_info(e.past, text("Of a past call: %s was seen in this slot", tostring(found.past)))
		return
	end
	if found.call_frame then
		generated(tree, f.call_frame, found.call_frame)
		generated(tree, f.time, relative(found.time))
	elseif h.type == CALL and call.result_frame then
		generated(tree, f.result_frame, call.result_frame)
	end
	if found.challenge then
		generated(tree, f.challenge_frame, found.challenge)
	end
	if found.original then
		generated(tree, f.original_frame, found.original)
		tree:add_proto_expert_info(e.repeated, "Retransmission, unless duplicated by the network or captured twice")
	elseif found.repeated then
		tree:add_proto_expert_info(e.repeated, text("Retransmission: %d time-outs before this capture has it", h.retransmissions))
	end
	if found.packets and h.packet_number > found.packets then
		tree:add_proto_expert_info(e.odd, text("%d packets have arrived, of %d", h.packet_number, found.packets))
	end
	show_whole(tree, h, found, pinfo, prefix)
end

local function of(h) return has(h.flags, OF_RESULT) and "result" or "call" end

-- Whether an ack says that the message has arrived whole.
local function is_whole(h, found) return h.type == ACK and h.packet_number == found.packets end

-- One line of a packet, for the list.
local function line(h, found, missing)
	local out = text("%s %s slot %d", TYPES[h.type] or text("type %d", h.type), tostring(h.sequence), h.slot)
	local function more(...) out = out .. text(...) end

	if h.type == CALL then
		more(" procedure %d", h.procedure)
	end
	if h.carries then
		if h.packets > 1 then
			more(", packet %d of %d", h.packet_number, h.packets)
		end
		more(", %d bytes", h.data_bytes)
	elseif h.type == ACK then
		if is_whole(h, found) then
			more(", %s has arrived", of(h))
		else
			more(", packets below %d of the %s have arrived", h.packet_number, of(h))
		end
	elseif h.type == NACK then
		more(", missing %s of the %s", ranges(missing), of(h))
	elseif h.type == CHALLENGE then
		more(", incarnation 0x%08x, claimed 0x%08x, memory %d ms", h.incarnation, h.procedure, h.packet_bytes)
	elseif h.type == REJECT then
		more(", %s", REASONS[h.procedure] or text("reason %d", h.procedure))
	end
	if has(h.flags, ASK) then
		more(", ask")
	end
	if has(h.flags, DELEGATED) then
		more(", delegated")
	end
	if found.repeated then
		more(", retransmission%s", h.type == CALL and h.retransmissions > 0 and text(" %d", h.retransmissions) or "")
	elseif found.past then
		more(", past")
	end
	return out
end

-- What cannot be a header, or one of another version: its first bytes and the reason.
local function show_stub(tvb, at, tree, which, what)
	local left = tvb:len() - at
	local item = left > 0 and tree:add(peregrine, tvb(at)) or tree:add(peregrine)
	if left >= 3 then
		item:add(f.type, tvb(at, 1))
		show_flags(item, tvb(at + 1, 1))
		item:add(f.version, tvb(at + 2, 1))
		at, left = at + 3, left - 3
	end
	if left > 0 then
		item:add(f.rest, tvb(at))
	end
	item:add_proto_expert_info(which, what)
	item:append_text(": " .. what)
	return what
end

-- Shows the packet at an offset, behind the prefix if there is one, up to where it is said to end; returns its line.
local function show(tvb, at, reported, pinfo, root, prefix)
	local captured = math.min(tvb:len(), reported)
	local h = read(tvb, at)
	if not h then
		if reported - at < HEADER_BYTES then
			return show_stub(tvb, at, root, e.length,
				text("malformed: %d bytes, but a header has %d", reported - at, HEADER_BYTES))
		end
		return show_stub(tvb, at, root, e.cut, "header cut by the capture")
	end
	local wrong = faults(h, reported)
	if h.version ~= VERSION then
		return show_stub(tvb, at, root, e.version, text("malformed: %s", wrong[1][2]))
	end

	local tree = root:add(peregrine, tvb(at, captured - at))
	local found = {}
	if #wrong == 0 and not pinfo.in_error_pkt then
		local key = pinfo.number * 2 ^ 16 + at
		if not pinfo.visited and not frames[key] then
			frames[key] = follow(h, tvb, pinfo, prefix)
		end
		found = frames[key] or {}
	end

	tree:add(f.type, tvb(at, 1))
	show_flags(tree, tvb(at + 1, 1))
	tree:add(f.version, tvb(at + 2, 1))
	tree:add(f.retransmissions, tvb(at + 3, 1))
	tree:add_le(f.slot, tvb(at + 4, 2))
	tree:add_le(h.type == CHALLENGE and f.taken or f.credits, tvb(at + 6, 2))
	tree:add_le(f.client, tvb(at + 8, 8))
	tree:add_le(f.sequence, tvb(at + 16, 8))
	tree:add_le(f.incarnation, tvb(at + 24, 4))
	if h.type == CHALLENGE then
		tree:add_le(f.claimed, tvb(at + 28, 4))
		tree:add_le(f.cookie, tvb(at + 32, 8)) -- low half first: the same as 8 bytes little-endian
	else
		tree:add_le(h.type == REJECT and f.reason or f.procedure, tvb(at + 28, 4))
		tree:add_le(f.message_bytes, tvb(at + 32, 4))
		local number = tree:add_le(f.packet_number, tvb(at + 36, 4))
		if h.type == ACK and not is_whole(h, found) then
			number:append_text(" (all below it have arrived)")
		elseif h.type == NACK then
			number:append_text(" (all below it have arrived, itself is missing)")
		elseif h.carries and #wrong == 0 then
			number:append_text(text(" (of %d)", h.packets))
			generated(tree, f.packets, h.packets)
		end
	end
	tree:add_le(f.data_bytes, tvb(at + 40, 4))
	tree:add_le(h.type == CHALLENGE and f.memory or f.packet_bytes, tvb(at + 44, 4))

	local extension_at = at + HEADER_BYTES
	if has(h.flags, COOKIE) and tvb:len() - extension_at >= EXTENSION_BYTES then
		tree:add_le(f.cookie, tvb(extension_at, EXTENSION_BYTES))
		extension_at = extension_at + EXTENSION_BYTES
	end
	if has(h.flags, KEYED) and tvb:len() - extension_at >= EXTENSION_BYTES then
		tree:add(f.check, tvb(extension_at, EXTENSION_BYTES))
	end
	local missing = {}
	if h.type == NACK then
		missing = show_bitmap(tree, tvb, h)
	else
		show_data(tree, tvb, h, found, prefix)
	end
	if h.ends_at < captured then
		tree:add(f.rest, tvb(h.ends_at, captured - h.ends_at))
	end

	for _, each in ipairs(wrong) do
		tree:add_proto_expert_info(each[1], each[2])
	end
	if #wrong == 0 then
		for _, each in ipairs(oddities(h, tvb)) do
			tree:add_proto_expert_info(e.odd, each)
		end
		if h.type == REJECT then
			tree:add_proto_expert_info(e.reject, text("Call rejected: %s", REASONS[h.procedure] or "unknown reason"))
		end
		if found.call or found.past then
			show_found(tree, h, found, pinfo, prefix)
		end
		if reported > captured then
			tree:add_proto_expert_info(e.cut, text("%d bytes were not captured", reported - captured))
		end
	end
	local said = line(h, found, missing)
	if #wrong > 0 then
		said = text("%s, malformed: %s", said, wrong[1][2])
	end
	tree:append_text(": " .. said)
	return said
end

-- Where the packets of a datagram end. A burst leaves its host, and may reach another, as one large datagram, and is captured
-- as such: packets of one length, of which the last may be shorter. What is not all of that is one packet.
local function packet_ends(tvb)
	local reported, captured, found = tvb:reported_len(), tvb:len(), {}
	local first = read(tvb, 0)
	if not first or first.ends_at >= reported then
		return { reported }
	end
	for at = 0, reported - 1, first.ends_at do
		local ends = math.min(at + first.ends_at, reported)
		local h = read(tvb, at)
		if not h and captured < reported and ends - at >= HEADER_BYTES then
			return found -- the capture kept no more
		elseif not h or #faults(h, ends) > 0 then
			return { reported }
		end
		found[#found + 1] = ends
	end
	return found
end

function peregrine.dissector(tvb, pinfo, root)
	if tvb:len() > 0 then
		local at, said = 0, {}
		pinfo.cols.protocol = "Peregrine"
		for _, ends in ipairs(packet_ends(tvb)) do
			said[#said + 1] = show(tvb, at, ends, pinfo, root, nil)
			at = ends
		end
		if at < tvb:reported_len() then
			root:add_proto_expert_info(e.cut, text("%d bytes of more packets were not captured", tvb:reported_len() - at))
		end
		pinfo.cols.info = said[1] .. (#said > 1 and text(" (and %d more packets)", #said - 1) or "")
	end
	return tvb:len()
end

-- The number is 4 bytes in no byte order; shown as the engine prints it.
function peregrine_ip.dissector(tvb, pinfo, root)
	if tvb:len() == 0 then
		return 0
	end
	pinfo.cols.protocol = "Peregrine"
	local tree = root:add(peregrine_ip, tvb(0, math.min(PREFIX_BYTES, tvb:len())))
	if tvb:len() < PREFIX_BYTES then
		local cut = tvb:reported_len() >= PREFIX_BYTES
		local what = cut and "prefix cut by the capture"
			or text("malformed: %d bytes, but a prefix has %d", tvb:reported_len(), PREFIX_BYTES)
		tree:add(f.rest, tvb())
		tree:add_proto_expert_info(cut and e.cut or e.length, what)
		tree:append_text(": " .. what)
		pinfo.cols.info = what
		return tvb:len()
	end
	local prefix = { destination = tvb(0, 4):uint(), source = tvb(4, 4):uint() }
	tree:add(f.destination, tvb(0, 4))
	tree:add(f.source, tvb(4, 4))
	tree:append_text(text(": from endpoint 0x%08x to 0x%08x", prefix.source, prefix.destination))
	if prefix.destination == 0 or prefix.source == 0 then
		tree:add_proto_expert_info(e.odd, "No endpoint has the number 0")
	end
	pinfo.cols.info = show(tvb, PREFIX_BYTES, tvb:reported_len(), pinfo, root, prefix)
	return tvb:len()
end

-- Over UDP a packet is known by its header alone: ports are the users' choice.
local function heuristic(tvb, pinfo, root)
	local h = read(tvb, 0)
	if not h or #faults(h, packet_ends(tvb)[1]) > 0 then
		return false
	end
	peregrine.dissector(tvb, pinfo, root)
	pinfo.conversation = peregrine -- so that malformed ones between these two are shown as such
	return true
end
peregrine:register_heuristic("udp", heuristic)

local registered = {}
local function register(table_name, number, proto)
	local dissectors = DissectorTable.get(table_name)
	if registered[table_name] == number then
		return
	end
	if registered[table_name] then
		dissectors:remove(registered[table_name], proto)
	end
	registered[table_name] = number > 0 and number or nil
	if number > 0 then
		dissectors:add(number, proto)
	end
end

local function register_all()
	register("udp.port", peregrine.prefs.udp_port, peregrine)
	register("ip.proto", peregrine.prefs.ip_protocol, peregrine_ip)
end
peregrine.prefs_changed = register_all
register_all()
DissectorTable.get("udp.port"):add_for_decode_as(peregrine)
