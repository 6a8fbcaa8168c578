#pragma once
// The Lua that servers run for us. Each script touches declared keys only, answers a refusal of a command (ACL, memory,
// a replica) as {-2, command, error, key} instead of failing half-way, and writes the lease's own key last.
#include <algorithm>
#include <array>
#include <string_view>

#include "redlease/types.hpp"
#include "redlease/wire/script.hpp"

namespace redlease {
inline namespace v0 {

namespace lua {

template <const std::string_view&... parts>
struct Joined {
  static constexpr auto text = [] {
    std::array<char, (parts.size() + ...)> all{};
    auto to = all.begin();
    ((to = std::copy(parts.begin(), parts.end(), to)), ...);
    return all;
  }();
  static constexpr std::string_view view{text.data(), text.size()};
};

// KEYS: lease, meta. ARGV: token, ttl in ms, …
inline constexpr std::string_view head = R"(local K,M,tok,ttl=KEYS[1],KEYS[2],ARGV[1],ARGV[2]
local pcall=redis.pcall
local cur=pcall('GET',K)
if type(cur)=='table' then return {-2,'GET',cur.err,K} end
)";

// Reads meta ("fence token since holder") and the time; sets m, t, now (server time in microseconds) and nows (as
// text).
inline constexpr std::string_view look = R"(local m=pcall('GET',M)
if type(m)=='table' then return {-2,'GET',m.err,M} end
local t=pcall('TIME')
if t.err then return {-2,'TIME',t.err,K} end
local now=t[1]*1000000+t[2]
local nows=string.format('%.0f',now)
)";

// Never shortens what the server keeps; a key that somebody has made persist gets its expiry back.
inline constexpr std::string_view lengthen = R"(local p=pcall('PTTL',K)
if type(p)=='table' then return {-2,'PTTL',p.err,K} end
if p<ttl+0 then
local r=pcall('PEXPIRE',K,ttl)
if type(r)=='table' then return {-2,'PEXPIRE',r.err,K} end
end
)";

// Makes the next fence, remembers it; sets fs. Needs m, t, now, nows, floor, who. A fence that stands ahead of the
// clock is remembered for so much longer. Beyond 2^53 - 2 a number is no longer exact, so that is refused.
inline constexpr std::string_view next_fence = R"(local c=t[1]*1048576+t[2]
local f=math.max((tonumber(m and string.match(m,'^%d+')) or 0)+1,c,floor+1)
if f>9007199254740990 then return {-3} end
local fs=string.format('%.0f',f)
local px='2592000000'
if f>c then px=string.format('%.0f',2592000000+math.ceil((f-c)/1048.576)) end
local s=pcall('SET',M,fs..' '..tok..' '..nows..' '..who,'PX',px)
if s.err then return {-2,'SET',s.err,M} end
)";

inline constexpr std::string_view acquire_busy = R"(if cur and cur~=tok then
local p=pcall('PTTL',K)
if type(p)=='table' then return {-2,'PTTL',p.err,K} end
local m=pcall('GET',M)
local g=type(m)=='string' and string.match(m,'^%d+ ')
local who
if g and string.sub(m,#g+1,#g+#cur+1)==cur..' ' then who=string.match(m,'^%d+ (.*)$',#g+#cur+2) end
return {0,p,who or ''}
end
)";

inline constexpr std::string_view acquire_mine = R"(local floor,who=ARGV[4],ARGV[5]
if ARGV[3]~='0' and now>ARGV[3]+0 then return {-1,nows} end
if cur then
)";

// If meta remembers the fence of this very token: g. Ends in an open "then".
inline constexpr std::string_view if_remembered = R"(local g=string.match(m or '','^%d+')
if g and string.sub(m,#g+1,#g+#tok+2)==' '..tok..' ' then )";

inline constexpr std::string_view acquire_mine_end = R"(return {1,g,nows} end
end
)";

inline constexpr std::string_view acquire_set = R"(if not cur then
local r=pcall('SET',K,tok,'PX',ttl)
if r.err then return {-2,'SET',r.err,K} end
end
return {1,fs,nows}
)";

// Compares the token; not_mine answers 1, gone or taken. What lies between acts on the caller's own.
inline constexpr std::string_view if_mine = R"(local c=redis.pcall('GET',KEYS[1])
if c==ARGV[1] then
)";

inline constexpr std::string_view not_mine = R"(return 1
end
if type(c)=='table' then return {-2,'GET',c.err,KEYS[1]} end
return c and -1 or 0
)";

inline constexpr std::string_view renew = R"(local p=redis.pcall('PTTL',KEYS[1])
if type(p)=='table' then return {-2,'PTTL',p.err,KEYS[1]} end
if p<ARGV[2]+0 then
local r=redis.pcall('PEXPIRE',KEYS[1],ARGV[2])
if type(r)=='table' then return {-2,'PEXPIRE',r.err,KEYS[1]} end
end
)";

inline constexpr std::string_view adopt_mine = R"(if not cur then return {0} end
if cur~=tok then return {-1} end
)";

inline constexpr std::string_view adopt_fence = R"(return {1,g} end
local floor,who='0',''
)";

inline constexpr std::string_view adopt_end = R"(return {1,fs}
)";

inline constexpr std::string_view release = R"(local r=redis.pcall('DEL',KEYS[1])
if type(r)=='table' then return {-2,'DEL',r.err,KEYS[1]} end
)";

inline constexpr std::string_view inspect = R"(local g,since,who='0','',''
local p=pcall('PTTL',K)
if type(p)=='table' then return {-2,'PTTL',p.err,K} end
if m then
g=string.match(m,'^%d+') or '0'
if cur and string.sub(m,#g+1,#g+#cur+2)==' '..cur..' ' then
since,who=string.match(m,'^(%d+) (.*)$',#g+#cur+3)
end
end
return {cur and 1 or 0,p,g,since or '',nows,who or ''}
)";

inline constexpr std::string_view break_lease = R"(if not cur then return 0 end
if #cur==0 or #cur>256 then return {-4,#cur} end
local r=pcall('DEL',K)
if type(r)=='table' then return {-2,'DEL',r.err,K} end
return 1
)";

inline constexpr std::string_view fenced_set = R"(local R,pcall=KEYS[1],redis.pcall
local f=pcall('HGET',R,'fence')
if type(f)=='table' then return {-2,'HGET',f.err,R} end
if not f then
local e=pcall('EXISTS',R)
if type(e)=='table' then return {-2,'EXISTS',e.err,R} end
if e==1 then return {-4} end
elseif not string.match(f,'^%d+$') then return {-4}
elseif tonumber(f)>ARGV[1]+0 then return {0,f} end
local r=pcall('HSET',R,'fence',ARGV[1],'value',ARGV[2])
if type(r)=='table' then return {-2,'HSET',r.err,R} end
return {1,ARGV[1]}
)";

}  // namespace lua

struct Scripts {
  // KEYS: lease, meta. ARGV: token, ttl, not-after in server microseconds (0: none), floor, holder and label.
  // {1, fence, now} ours · {0, pttl, holder} busy · {-1, now} too late, nothing done · {-3} no fence left
  static constexpr Script acquire{
      lua::Joined<lua::head, lua::acquire_busy, lua::look, lua::acquire_mine, lua::lengthen, lua::if_remembered,
                  lua::acquire_mine_end, lua::next_fence, lua::acquire_set>::view};
  // KEYS: lease. ARGV: token, ttl. 1 renewed · 0 gone · -1 taken
  static constexpr Script renew{lua::Joined<lua::if_mine, lua::renew, lua::not_mine>::view};
  // KEYS: lease, meta. ARGV: token, ttl. {1, fence} renewed · {0} gone · {-1} taken · {-3} no fence left
  static constexpr Script adopt{lua::Joined<lua::head, lua::adopt_mine, lua::lengthen, lua::look, lua::if_remembered,
                                            lua::adopt_fence, lua::next_fence, lua::adopt_end>::view};
  // KEYS: lease. ARGV: token. 1 released · 0 gone · -1 taken
  static constexpr Script release{lua::Joined<lua::if_mine, lua::release, lua::not_mine>::view};
  // KEYS: lease, meta. {held, pttl, fence, since, now, holder and label}
  static constexpr Script inspect{lua::Joined<lua::head, lua::look, lua::inspect>::view};
  // KEYS: lease. 1 removed · 0 nothing there · {-4, size} the value is no token
  static constexpr Script break_lease{lua::Joined<lua::head, lua::break_lease>::view};
  // KEYS: resource. ARGV: fence, value. {1, fence} written · {0, fence} a newer one was there · {-4} holds something
  // else
  static constexpr Script fenced_set{lua::fenced_set};
};

// What "not yours" is in the answers of renew, adopt and release.
constexpr LossCause cause_of(long long code) noexcept { return code == 0 ? LossCause::gone : LossCause::taken; }

}  // namespace v0
}  // namespace redlease
